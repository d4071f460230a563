#include "io/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"

namespace fdbench {
namespace {

namespace fs = std::filesystem;

template <class Call>
std::string refusal(Exit code, Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "no error";
}

class FileTest : public testing::Test {
 protected:
  FileTest()
      : root_(fs::temp_directory_path() / ("fdbench_file_" + std::to_string(::getpid()) + '_' +
                                           testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(root_);
  }
  ~FileTest() override { fs::remove_all(root_); }

  std::string path(const std::string& name) const { return (root_ / name).string(); }
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(root_)) names.push_back(entry.path().filename().string());
    return names;
  }

  fs::path root_;
};

// Runs `work` in a child process, which exits with what it returns, or by a signal: 1000 + signal.
template <class Work>
int in_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST_F(FileTest, WhatWasWrittenIsRead) {
  const std::string text("a\0b\r\n\xff", 6);
  io::write_atomically(path("x"), text);
  EXPECT_EQ(io::read_file(path("x")), text);
  io::write_atomically(path("x"), "");
  EXPECT_EQ(io::read_file(path("x")), "");
  EXPECT_EQ(entries(), std::vector<std::string>{"x"});
}

TEST_F(FileTest, ReadingNamesWhatIsWrong) {
  EXPECT_EQ(refusal(Exit::usage, [&] { io::read_file(path("none")); }),
            path("none") + ": cannot be read: No such file or directory");
  EXPECT_EQ(refusal(Exit::usage, [&] { io::read_file(root_.string()); }),
            root_.string() + ": is a directory; name a file");
  EXPECT_EQ(refusal(Exit::usage, [&] { io::read_file(path("none/x")); }),
            path("none/x") + ": cannot be read: No such file or directory");
  io::write_atomically(path("x"), "12345");
  EXPECT_EQ(io::read_file(path("x"), 5), "12345");
  EXPECT_EQ(refusal(Exit::usage, [&] { io::read_file(path("x"), 4); }),
            path("x") + ": more than the 4 bytes that are read at most (it has 5)");
  // Memory that is not mapped: opens, but can't be read, whoever asks.
  EXPECT_EQ(refusal(Exit::usage, [&] { io::read_file("/proc/self/mem"); }),
            "/proc/self/mem: cannot be read: Input/output error");
}

TEST_F(FileTest, PipesAreReadToTheirEnd) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const pid_t writer = ::fork();
  if (writer == 0) {
    io::write_atomically(path("pipe"), std::string(200'000, 'p'));
    ::_exit(0);
  }
  EXPECT_EQ(io::read_file(path("pipe")), std::string(200'000, 'p'));
  ::waitpid(writer, nullptr, 0);
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
}

TEST_F(FileTest, ModeAndSymbolicLinkOfWhatIsReplacedAreKept) {
  io::write_atomically(path("real"), "old");
  fs::permissions(path("real"), fs::perms(0640));
  fs::create_symlink("real", path("link"));
  io::write_atomically(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(io::read_file(path("real")), "new");
  EXPECT_EQ(fs::status(path("real")).permissions(), fs::perms(0640));
  fs::create_symlink("not_yet", path("dangling"));
  io::probe_writable(path("dangling"), "--json");
  io::write_atomically(path("dangling"), "made");
  EXPECT_EQ(io::read_file(path("not_yet")), "made");
  fs::create_symlink("loop", path("loop"));
  EXPECT_EQ(refusal(Exit::not_written, [&] { io::write_atomically(path("loop"), "x"); }),
            "cannot write " + path("loop") + ": Too many levels of symbolic links");
}

TEST_F(FileTest, NewFilesHaveTheModeOfTheUmask) {
  const mode_t before = ::umask(027);
  io::write_atomically(path("x"), "");
  ::umask(before);
  EXPECT_EQ(fs::status(path("x")).permissions(), fs::perms(0640));
}

TEST_F(FileTest, AFullDiskIsReportedWithItsReason) {
  EXPECT_EQ(refusal(Exit::not_written, [] { io::write_atomically("/dev/full", "x"); }),
            "cannot write /dev/full: No space left on device");
  EXPECT_EQ(refusal(Exit::not_written, [&] { io::write_atomically(path("none/x"), "x"); }),
            "cannot write " + path("none/x") + ": No such file or directory");
}

TEST_F(FileTest, AWriteThatFailsHalfwayLeavesTheOldTextAndNothingElse) {
  io::write_atomically(path("x"), "old");
  const int code = in_child([&] {
    const rlimit limit{4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 90;
    const std::string message =
        refusal(Exit::not_written, [&] { io::write_atomically(path("x"), std::string(10'000, 'n')); });
    if (message != "cannot write " + path("x") + ": File too large") return 91;
    // The signal that came with it is gone, and the next small write goes through.
    sigset_t pending;
    sigpending(&pending);
    if (sigismember(&pending, SIGXFSZ)) return 92;
    io::write_atomically(path("y"), "small");
    return 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(io::read_file(path("x")), "old");
  EXPECT_EQ(entries().size(), 2u);
}

TEST_F(FileTest, ARenameThatFailsLeavesNoTemporaryFile) {
  fs::create_directories(path("taken/by"));
  EXPECT_EQ(refusal(Exit::not_written, [&] { io::write_atomically(path("taken"), "x"); }),
            "cannot write " + path("taken") + ": Is a directory");
  EXPECT_EQ(entries(), std::vector<std::string>{"taken"});
}

TEST_F(FileTest, AReaderNeverSeesAPart) {
  const std::string a(300'000, 'a'), b(300'000, 'b');
  io::write_atomically(path("x"), a);
  const pid_t writer = ::fork();
  if (writer == 0) {
    for (int i = 0; i < 40; ++i) io::write_atomically(path("x"), i % 2 == 0 ? b : a);
    ::_exit(0);
  }
  int status = 0, seen = 0;
  while (::waitpid(writer, &status, WNOHANG) == 0) {
    const std::string text = io::read_file(path("x"));
    ASSERT_TRUE(text == a || text == b);
    ++seen;
  }
  EXPECT_GT(seen, 0);
}

TEST_F(FileTest, ProbingFindsWhatWritingWouldFailOn) {
  const auto probe = [&](const std::string& name) {
    return refusal(Exit::usage, [&] { io::probe_writable(name, "--json"); });
  };
  EXPECT_EQ(probe(path("x.json")), "no error");
  EXPECT_EQ(probe("/dev/null"), "no error");
  EXPECT_EQ(probe(""), "--json: the file's name is empty");
  EXPECT_EQ(probe(root_.string()), "--json " + root_.string() + ": is a directory; name a file in it");
  EXPECT_EQ(probe(path("x/")), "--json " + path("x/") + ": is a directory; name a file in it");
  EXPECT_EQ(probe(path("none/x.json")), "--json " + path("none/x.json") + ": the directory " + path("none") +
                                            " does not exist; make it first");
  io::write_atomically(path("file"), "");
  EXPECT_EQ(probe(path("file/x.json")),
            "--json " + path("file/x.json") + ": cannot be written: Not a directory");
  // Nobody can make a file there, not even root.
  EXPECT_EQ(probe("/proc/x.json").rfind("--json /proc/x.json: no file can be made in /proc: ", 0), 0u);
  const std::string long_name = path(std::string(300, 'n'));
  EXPECT_EQ(probe(long_name), "--json " + long_name + ": cannot be written: File name too long");
  EXPECT_EQ(entries(), std::vector<std::string>{"file"});
}

TEST_F(FileTest, ProbingRespectsPermissions) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  io::write_atomically(path("x"), "");
  fs::permissions(path("x"), fs::perms(0444));
  EXPECT_EQ(refusal(Exit::usage, [&] { io::probe_writable(path("x"), "--csv"); }),
            "--csv " + path("x") + ": cannot be written: Permission denied");
  fs::permissions(root_, fs::perms(0555));
  EXPECT_EQ(refusal(Exit::usage, [&] { io::probe_writable(path("y"), "--csv"); }),
            "--csv " + path("y") + ": no file can be made in " + root_.string() + ": Permission denied");
  fs::permissions(root_, fs::perms(0755));
}

TEST_F(FileTest, ProbingLeavesWhatIsThereAlone) {
  io::write_atomically(path("x"), "kept");
  const auto before = fs::last_write_time(path("x"));
  io::probe_writable(path("x"), "--json");
  EXPECT_EQ(io::read_file(path("x")), "kept");
  EXPECT_EQ(fs::last_write_time(path("x")), before);
  io::probe_writable(path("y"), "--json");
  EXPECT_EQ(entries(), std::vector<std::string>{"x"});
}

TEST_F(FileTest, DirectoriesAreMadeWithTheirParents) {
  io::make_directories(path("a/b/c"), "--out");
  io::make_directories(path("a/b/c/"), "--out");
  EXPECT_TRUE(fs::is_directory(path("a/b/c")));
  io::write_atomically(path("file"), "");
  EXPECT_EQ(refusal(Exit::usage, [&] { io::make_directories(path("file"), "--out"); }),
            "--out " + path("file") + ": the directory cannot be made: Not a directory");
  EXPECT_EQ(refusal(Exit::usage, [&] { io::make_directories(path("file/x"), "--out"); }),
            "--out " + path("file/x") + ": the directory cannot be made: Not a directory");
}

TEST_F(FileTest, TheSecondWriterOfAFileIsRefused) {
  const auto lock = io::lock_output(path("x.json"), "--json");
  const std::string holder = std::to_string(::getpid());
  const int code = in_child([&] {
    const std::string message = refusal(Exit::usage, [&] { io::lock_output(path("./x.json"), "--csv"); });
    return message == "--csv " + path("./x.json") + ": another fdbench (process " + holder +
                          ") is writing it; wait for it or name another file"
               ? 0
               : 1;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(refusal(Exit::usage, [&] { io::lock_output(path("x.json"), "--csv"); }),
            "--csv " + path("x.json") + ": two outputs name this file; give each its own");
  io::lock_output(path("y.json"), "--csv");
}

TEST_F(FileTest, ALockIsGoneWithItsHolder) {
  { const auto lock = io::lock_output(path("x"), "--json"); }
  EXPECT_TRUE(entries().empty());
  EXPECT_EQ(in_child([&] {
              io::lock_output(path("x"), "--json").release();  // held when the process is killed
              ::raise(SIGKILL);
              return 0;
            }),
            1000 + SIGKILL);
  EXPECT_EQ(entries().size(), 1u);
  { const auto lock = io::lock_output(path("x"), "--json"); }
  EXPECT_TRUE(entries().empty());
}

TEST_F(FileTest, ALockLeftByAnotherUserIsTaken) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  io::write_atomically(path(".x.lock"), "1\n");
  fs::permissions(path(".x.lock"), fs::perms(0444));
  const auto lock = io::lock_output(path("x"), "--json");
  refusal(Exit::usage, [&] { io::lock_output(path("x"), "--json"); });
}

TEST_F(FileTest, ManyWritersNeverHoldOneLockTogether) {
  // Each child takes the lock, sees whether anyone else has it, and lets go; many times over.
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c) {
    const pid_t child = ::fork();
    if (child == 0) {
      int taken = 0;
      for (int tries = 0; taken < 100 && tries < 2'000'000; ++tries) {
        try {
          const auto lock = io::lock_output(path("x"), "--json");
          if (::mkdir(path("inside").c_str(), 0700) != 0) ::_exit(1);
          if (::rmdir(path("inside").c_str()) != 0) ::_exit(2);
          ++taken;
        } catch (const Error&) {
        }
      }
      ::_exit(taken == 100 ? 0 : 3);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}

TEST_F(FileTest, DevicesHaveNoLock) {
  const auto a = io::lock_output("/dev/null", "--json");
  const auto b = io::lock_output("/dev/null", "--csv");
  EXPECT_TRUE(a && b);
}

}  // namespace
}  // namespace fdbench
