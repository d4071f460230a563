#include "io/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace fdbench::io {

namespace {

namespace fs = std::filesystem;

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  // False with errno where data that was already written turned out not to fit after all.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

// A write past RLIMIT_FSIZE raises SIGXFSZ, which ends the process; while one of these lives it only fails.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;
  ~NoFileSizeSignal() {
    if (sigismember(&before_, SIGXFSZ)) return;
    const timespec now{0, 0};
    while (sigtimedwait(&signal_, nullptr, &now) == SIGXFSZ) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t signal_{}, before_{};
};

int open_retrying(const char* path, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = ::open(path, flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// False with errno.
bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

// Some file systems and all pipes have nothing to sync, and say so with these.
bool sync(int fd) {
  return ::fsync(fd) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP;
}

struct Target {
  fs::path file;  // symbolic links followed
  bool exists = false;
  bool direct = false;  // a device or a pipe: written in place
  struct stat info {};

  fs::path directory() const {
    const fs::path parent = file.parent_path();
    return parent.empty() ? fs::path(".") : parent;
  }
};

// Where writing to `path` would go; nothing is opened. A dangling link is followed to the file it names.
// Sets errno and returns false where that can't be told.
bool resolve(const std::string& path, Target& target) {
  target.file = path;
  for (int links = 0; links < 40; ++links) {
    struct stat info {};
    if (::lstat(target.file.c_str(), &info) != 0) return errno == ENOENT;
    if (!S_ISLNK(info.st_mode)) break;
    // /dev/stdout leads through links whose text is not a path ("pipe:[123]"): stat sees through them.
    if (::stat(target.file.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) break;
    std::error_code error;
    const fs::path next = fs::read_symlink(target.file, error);
    if (error) {
      errno = error.value();
      return false;
    }
    target.file = next.is_absolute() ? next : target.file.parent_path() / next;
  }
  target.exists = ::stat(target.file.c_str(), &target.info) == 0;
  if (!target.exists && errno != ENOENT) return false;
  target.direct = target.exists && !S_ISREG(target.info.st_mode) && !S_ISDIR(target.info.st_mode);
  return true;
}

// A name in the target's directory that no one else uses, short whatever the target's name.
fs::path temporary_beside(const Target& target) {
  static std::atomic<unsigned> count{0};
  return target.directory() /
         (".fdbench-" + std::to_string(::getpid()) + '-' + std::to_string(++count) + ".tmp");
}

class Temporary {
 public:
  explicit Temporary(fs::path path)
      : path_(std::move(path)), fd_(open_retrying(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666)) {
    made_ = fd_.ok();
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (made_) ::unlink(path_.c_str());
  }
  FileDescriptor& file() { return fd_; }
  // False with errno.
  bool rename_to(const fs::path& path) {
    if (::rename(path_.c_str(), path.c_str()) != 0) return false;
    made_ = false;
    return true;
  }

 private:
  fs::path path_;
  FileDescriptor fd_;
  bool made_ = false;
};

[[noreturn]] void not_written(const std::string& path, int error) {
  throw Error(Exit::not_written, "cannot write " + path + ": " + reason_of(error));
}

void write_direct(const std::string& path, std::string_view text) {
  FileDescriptor file(open_retrying(path.c_str(), O_WRONLY | O_NOCTTY));
  if (!file.ok() || !write_all(file.get(), text) || !sync(file.get()) || !file.close()) {
    not_written(path, errno);
  }
}

}  // namespace

std::string read_file(const std::string& path, std::size_t max_bytes) {
  FileDescriptor file(open_retrying(path.c_str(), O_RDONLY | O_NOCTTY));
  if (!file.ok()) throw usage_error(path + ": cannot be read: " + reason_of(errno));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) throw usage_error(path + ": cannot be read: " + reason_of(errno));
  if (S_ISDIR(info.st_mode)) throw usage_error(path + ": is a directory; name a file");
  const std::string limit = ": more than the " + std::to_string(max_bytes) + " bytes that are read at most";
  if (info.st_size > 0 && static_cast<std::size_t>(info.st_size) > max_bytes) {
    throw usage_error(path + limit + " (it has " + std::to_string(info.st_size) + ")");
  }
  std::string text;
  char block[1 << 16];
  while (true) {
    const ssize_t n = ::read(file.get(), block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw usage_error(path + ": cannot be read: " + reason_of(errno));
    if (n == 0) return text;
    if (text.size() + static_cast<std::size_t>(n) > max_bytes) throw usage_error(path + limit);
    text.append(block, static_cast<std::size_t>(n));
  }
}

void write_atomically(const std::string& path, std::string_view text) {
  const NoFileSizeSignal guard;
  Target target;
  if (!resolve(path, target)) not_written(path, errno);
  if (target.direct) return write_direct(path, text);
  Temporary temporary(temporary_beside(target));
  FileDescriptor& file = temporary.file();
  if (!file.ok()) not_written(path, errno);
  if (target.exists) static_cast<void>(::fchmod(file.get(), target.info.st_mode & 07777));
  if (!write_all(file.get(), text) || !sync(file.get()) || !file.close() ||
      !temporary.rename_to(target.file)) {
    not_written(path, errno);
  }
  // So that the new name outlasts a power cut; the text itself is safe already.
  const FileDescriptor directory(open_retrying(target.directory().c_str(), O_RDONLY | O_DIRECTORY));
  if (directory.ok()) static_cast<void>(::fsync(directory.get()));
}

void probe_writable(const std::string& path, const std::string& flag) {
  const std::string head = flag + ' ' + path + ": ";
  if (path.empty()) throw usage_error(flag + ": the file's name is empty");
  Target target;
  if (!resolve(path, target)) throw usage_error(head + "cannot be written: " + reason_of(errno));
  if (path.back() == '/' || (target.exists && S_ISDIR(target.info.st_mode))) {
    throw usage_error(head + "is a directory; name a file in it");
  }
  if (target.exists && ::access(target.file.c_str(), W_OK) != 0) {
    throw usage_error(head + "cannot be written: " + reason_of(errno));
  }
  if (target.direct) return;
  const fs::path directory = target.directory();
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0 && errno == ENOENT) {
    throw usage_error(head + "the directory " + directory.string() + " does not exist; make it first");
  }
  // Asking is less sure than trying: quotas, read-only mounts and access lists all show only so.
  Temporary trial(temporary_beside(target));
  if (!trial.file().ok()) {
    throw usage_error(head + "no file can be made in " + directory.string() + ": " + reason_of(errno));
  }
  if (static_cast<long>(target.file.filename().native().size()) >
      ::pathconf(directory.c_str(), _PC_NAME_MAX)) {
    throw usage_error(head + "cannot be written: " + reason_of(ENAMETOOLONG));
  }
}

void refuse_overwriting(const std::string& output, const std::string& flag,
                        const std::vector<std::string>& inputs, const std::string& input_flag) {
  for (const std::string& input : inputs) {
    std::error_code absent;
    if (output == "-" || input == "-" || !fs::equivalent(output, input, absent)) continue;
    throw usage_error(flag + " " + output + ": is the file that " + input_flag + " reads; choose another");
  }
}

void make_directories(const std::string& path, const std::string& flag) {
  const std::string head = flag + ' ' + path + ": ";
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && fs::is_directory(path, error)) return;
  if (!error) error = std::make_error_code(std::errc::not_a_directory);
  throw usage_error(head + "the directory cannot be made: " + error.message());
}

namespace {

class SiblingLock : public OutputLock {
 public:
  SiblingLock(fs::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~SiblingLock() override { ::unlink(path_.c_str()); }  // while it is still held

 private:
  fs::path path_;
  FileDescriptor fd_;
};

class NoLock : public OutputLock {};

std::string holder(int fd) {
  char text[24] = {};
  const ssize_t n = ::pread(fd, text, sizeof text - 1, 0);
  const long pid = n > 0 ? std::strtol(text, nullptr, 10) : 0;
  if (pid == ::getpid()) return "two outputs name this file; give each its own";
  return "another fdbench" + (pid > 0 ? " (process " + std::to_string(pid) + ")" : std::string()) +
         " is writing it; wait for it or name another file";
}

}  // namespace

std::unique_ptr<OutputLock> lock_output(const std::string& path, const std::string& flag) {
  const std::string head = flag + ' ' + path + ": ";
  Target target;
  if (!resolve(path, target)) throw usage_error(head + "cannot be written: " + reason_of(errno));
  if (target.direct) return std::make_unique<NoLock>();
  const fs::path lock = target.directory() / ('.' + target.file.filename().string() + ".lock");
  while (true) {
    int fd = open_retrying(lock.c_str(), O_RDWR | O_CREAT, 0666);
    // Another user's who was killed: it can be held all the same.
    if (fd < 0 && errno == EACCES) fd = open_retrying(lock.c_str(), O_RDONLY);
    if (fd < 0) throw usage_error(head + "cannot make the lock " + lock.string() + ": " + reason_of(errno));
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const FileDescriptor file(fd);
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) return std::make_unique<NoLock>();
      throw usage_error(head + holder(fd));
    }
    // Whoever held it before may have removed the name between our open and our lock: then the lock is on a
    // file that nobody else will find.
    struct stat ours {
    }, named{};
    if (::fstat(fd, &ours) == 0 && ::stat(lock.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
        ours.st_dev == named.st_dev) {
      const std::string pid = std::to_string(::getpid()) + '\n';
      if (::ftruncate(fd, 0) == 0) static_cast<void>(write_all(fd, pid));
      return std::make_unique<SiblingLock>(lock, fd);
    }
    ::close(fd);
  }
}

}  // namespace fdbench::io
