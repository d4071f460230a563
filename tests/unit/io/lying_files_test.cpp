// Files that are not what their name says: every one is refused in one clear line (or, where it still makes
// sense, read), and none crashes the reader.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "example_result.h"
#include "io/fake_script.h"
#include "io/result_csv.h"
#include "io/result_json.h"
#include "io/suite.h"
#include "io/work_codec.h"

namespace fdbench {
namespace {

namespace fs = std::filesystem;

const std::string& valid_text() {
  static const std::string text = io::to_json(io_test::example_result());
  return text;
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = valid_text();
  const std::size_t at = text.find(from);
  if (at == std::string::npos) ADD_FAILURE() << "the example has no " << from;
  return text.replace(at, from.size(), to);
}

// The message, held to be one line that begins with the file's name.
std::string refusal(const std::string& text) {
  try {
    io::parse_result(text, "new.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    const std::string message = error.what();
    EXPECT_EQ(message.find_first_of("\r\n"), std::string::npos) << message;
    EXPECT_EQ(message.rfind("new.json", 0), 0u) << message;
    EXPECT_LT(message.size(), 300u) << message;
    return message;
  }
  return "was read";
}

constexpr const char* kExpected = "; expected a result file of schema fdbench.result/1.x";

TEST(LyingFiles, Empty) {
  EXPECT_EQ(refusal(""), std::string("new.json: empty") + kExpected);
  EXPECT_EQ(refusal(" \n\t\n"), std::string("new.json: empty") + kExpected);
}

TEST(LyingFiles, NotJson) {
  EXPECT_EQ(refusal("id,variant,role\r\n"),
            std::string("new.json:1:1: not JSON here: unexpected \"id\"") + kExpected);
  EXPECT_EQ(refusal("\x89PNG\r\n"),
            std::string("new.json:1:1: not JSON here: unexpected \"\xef\xbf\xbd\"") + kExpected);
  EXPECT_EQ(refusal("{\"a\": 1}\n{\"a\": 2}"),
            std::string("new.json:2:1: not JSON here: unexpected \"{\"") + kExpected);
  EXPECT_EQ(refusal(std::string(1, '\0')),
            std::string("new.json:1:1: not JSON here: unexpected \"\\u0000\"") + kExpected);
}

TEST(LyingFiles, SyntaxNamesLineColumnAndWhatIsThere) {
  EXPECT_EQ(refusal("{\n  \"a\": 1,\n}"),
            std::string("new.json:3:1: not JSON here: unexpected \"}\" (no comma before it)") + kExpected);
  EXPECT_EQ(
      refusal("{\"a\": 'b'}"),
      std::string("new.json:1:7: not JSON here: unexpected \"'\" (strings take double quotes)") + kExpected);
  EXPECT_EQ(refusal("// all of it\n{}"),
            std::string("new.json:1:1: not JSON here: unexpected \"/\" (JSON has no comments)") + kExpected);
  EXPECT_EQ(refusal("{\"a\" 1}"), std::string("new.json:1:6: not JSON here: unexpected \"1\"") + kExpected);
  EXPECT_EQ(refusal("{\"a\": \"x\ny\"}"),
            std::string("new.json:1:9: not JSON here: unexpected \"\\n\"") + kExpected);
  EXPECT_EQ(refusal("{\"a\": 1 \"b\": 2}"),
            std::string("new.json:1:9: not JSON here: unexpected \"\\\"b\\\"\"") + kExpected);
  EXPECT_EQ(refusal("{\"a\": 1, \"a\": 2}"),
            "new.json: the key \"a\" stands twice in one object; keep one of them");
}

TEST(LyingFiles, TruncatedAnywhere) {
  const std::string& text = valid_text();
  for (std::size_t length = 1; length + 1 < text.size(); length += 7) {
    const std::string message = refusal(text.substr(0, length));
    EXPECT_NE(message.find("the text ends in the middle of a value (truncated?)"), std::string::npos)
        << length << ": " << message;
  }
}

TEST(LyingFiles, NotANumber) {
  const std::string hint = " (JSON has no NaN and no infinity: write null)";
  for (const std::string word : {"NaN", "nan", "Infinity", "-Infinity", "inf"}) {
    const std::string message = refusal(with("\"median\": 13696", "\"median\": " + word));
    EXPECT_NE(message.find("unexpected \"" + word + '"' + hint), std::string::npos) << message;
  }
  EXPECT_NE(refusal(with("13696,", "1e999,")).find("the number 1e999 is beyond what a double holds"),
            std::string::npos);
}

TEST(LyingFiles, ForeignSchemas) {
  const std::string schema = "fdbench.result/1.0";
  for (const std::string other : {"fdbench.result/2.0", "fdbench.suite/1.0", "fdbench.result/1",
                                  "fdbench.result/1.", "fdbench.result/1.x", ""}) {
    EXPECT_EQ(refusal(with(schema, other)),
              "new.json: schema must be fdbench.result/1.x (all that this build reads), not the string \"" +
                  other + '"');
  }
  EXPECT_EQ(refusal("{}"), std::string("new.json: the file has no \"schema\"") + kExpected);
  EXPECT_EQ(refusal("[1]"), "new.json: the file must be an object, not an array of 1");
  EXPECT_EQ(refusal("{\"schema\": 1}"), "new.json: schema must be a string, not 1");
}

TEST(LyingFiles, WrongContentNamesThePath) {
  const struct {
    const char *from, *to, *message;
  } cases[] = {
      {"\"median\": 13696,", "\"median\": \"13696\",",
       "results[0].time_ns.median must be a number, not the string \"13696\""},
      {"\"median\": 13696,", "\"median\": null,", "results[0].time_ns.median must be a number, not null"},
      {"\"median\": 13696,", "",
       "results[0].time_ns has no \"median\"; expected a result file of schema "
       "fdbench.result/1.x"},
      {"\"median\": 13696,", "\"median\": 1,",
       "results[0].time_ns.median must be between min and max, not 1"},
      {"\"min\": 13664,", "\"min\": -5,",
       "results[0].time_ns.min must be a number of at least 0.001, not -5"},
      {"\"n\": 6,", "\"n\": 3.5,", "results[0].time_ns.n must be an integer of at least 0, not 3.5"},
      {"\"n\": 6,", "\"n\": -3,", "results[0].time_ns.n must be an integer of at least 0, not -3"},
      {"\"n\": 6,", "\"n\": 18446744073709551615,",
       "results[0].time_ns.n must be an integer of at least 0, not 18446744073709551615"},
      {"\"t\": 13664", "\"t\": \"fast\"",
       "results[0].time_ns.samples[1].t must be a number of at least 0.001, not the string \"fast\""},
      {"\"t\": 13664", "\"t\": -1",
       "results[0].time_ns.samples[1].t must be a number of at least 0.001, not -1"},
      {"\"ci95\": [13664, 13728.5]", "\"ci95\": [2, 1]",
       "results[0].time_ns.ci95 must be an array [lo, hi] with lo <= hi, not an array of 2"},
      {"\"ci95\": [13664, 13728.5]", "\"ci95\": [1]",
       "results[0].time_ns.ci95 must be an array [lo, hi], not an array of 1"},
      {"\"ci95\": [13664, 13728.5]", "\"ci95\": 1", "results[0].time_ns.ci95 must be an array, not 1"},
      {"\"status\": \"ok\"", "\"status\": \"fine\"",
       "results[0].status must be \"ok\", \"unsupported\", \"incorrect\", \"failed\" or \"timeout\", not the "
       "string "
       "\"fine\""},
      {"\"role\": \"candidate\"", "\"role\": \"star\"",
       "results[0].role must be \"oracle\", \"roof\", \"reference\" or \"candidate\", not the string "
       "\"star\""},
      {"\"seq\": 8192", "\"seq\": -8192",
       "results[0].problem.seq must be an integer of at least 0, not -8192"},
      {"\"kv_heads\": 8,", "\"kv_heads\": 5,",
       "results[0].problem makes no problem: heads 32 is not a multiple of kv_heads 5"},
      {"\"kv_heads\": 8,", "\"kv_heads\": 0,",
       "results[0].problem.kv_heads must be an integer of at least 1, not 0"},
      {"\"dtype\": \"bf16\"", "\"dtype\": \"fp8\"",
       "results[0].problem.dtype must be \"bf16\" or \"fp16\", not the string \"fp8\""},
      {"\"grid\": [16, 8, 1]", "\"grid\": [16, 8]",
       "results[0].plan.grid must be an array [x, y, z], not an array of 2"},
      {"\"tuning\": {\"chunk\": 512", "\"tuning\": {\"chunk\": \"512\"",
       "results[0].tuning.chunk must be an integer, not the string \"512\""},
      {"\"flags\": [\"throttled\", \"launches_batched\"]", "\"flags\": [\"throttled\", 1]",
       "results[0].flags[1] must be a string, not 1"},
      {"\"cache\": \"cold\"", "\"cache\": \"lukewarm\"",
       "run.cache must be \"cold\" or \"hot\", not the string \"lukewarm\""},
      {"\"seed\": 1,", "\"seed\": -1,", "run.seed must be an integer from 0 to 2^64 - 1, not -1"},
      {"\"processes\": 2,", "\"processes\": 4294967296,",
       "run.processes must be an integer of at least 0 and at most 2147483647, not 4294967296"},
      {"\"mig\": false", "\"mig\": \"no\"", "run.device.mig must be true or false, not the string \"no\""},
      {"\"kind\": \"cuda\"", "\"kind\": \"tpu\"",
       "run.device.kind must be \"cpu\", \"cuda\" or \"fake\", not the string \"tpu\""},
      {"\"run\": {", "\"rum\": {",
       "the file has no \"run\"; expected a result file of schema fdbench.result/1.x"},
      {"\"name\": \"NVIDIA H200\"", "\"name\": [\"NVIDIA H200\"]",
       "run.device.name must be a string, not an array of 1"},
      // A name of escape sequences would be the terminal's.
      {"\"name\": \"NVIDIA H200\"", "\"name\": \"NVIDIA\\u001b[2J\"",
       "run.device.name must be without control characters, not the string \"NVIDIA\\u001b[2J\""},
      {"\"tuning\": {\"chunk\": 512", "\"tuning\": {\"chunk\\u0007\": 512",
       "results[0].tuning has an axis with a control character in its name"},
      {"\"variant\": \"flash_decode_tma\"", "\"variant\": \"flash\\ndecode\"",
       "results[0].variant must be without control characters, not the string \"flash\\ndecode\""},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(refusal(with(one.from, one.to)), std::string("new.json: ") + one.message);
  }
}

TEST(LyingFiles, LongStringsAreCutInMessages) {
  const std::string message =
      refusal(with("\"status\": \"ok\"", "\"status\": \"" + std::string(100000, 'x') + '"'));
  EXPECT_NE(message.find("xxx..."), std::string::npos);
  refusal("{\"" + std::string(100000, 'k') + "\": 1, \"" + std::string(100000, 'k') + "\": 1}");
  refusal(std::string(100000, 'z'));
}

TEST(LyingFiles, DepthBombs) {
  for (const std::string unit : {"[", "{\"a\":"}) {
    std::string text;
    for (int i = 0; i < 1'000'000; ++i) text += unit;
    EXPECT_EQ(refusal(text), std::string("new.json: nested more than 64 deep") + kExpected);
  }
}

TEST(LyingFiles, ManyKeysAreNotQuadratic) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += "\"k" + std::to_string(i) + "\":0,";
  text += "\"schema\": 7}";
  EXPECT_EQ(refusal(text), "new.json: schema must be a string, not 7");
}

TEST(LyingFiles, OnDisk) {
  const fs::path directory = fs::temp_directory_path() / ("fdbench_lying_" + std::to_string(::getpid()));
  fs::create_directories(directory);
  const std::string big = (directory / "big.json").string();
  std::ofstream(big).put(' ');
  fs::resize_file(big, 200'000'000);
  const auto message = [](const std::string& path) {
    try {
      io::read_result_file(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::usage);
      return std::string(error.what());
    }
    return std::string("was read");
  };
  EXPECT_EQ(message(big), big + ": more than the 134217728 bytes that are read at most (it has 200000000)");
  EXPECT_EQ(message(directory.string()), directory.string() + ": is a directory; name a file");
  EXPECT_EQ(message("/no/such.json"), "/no/such.json: cannot be read: No such file or directory");
  EXPECT_EQ(message("/dev/null"), std::string("/dev/null: empty") + kExpected);
  EXPECT_EQ(message("/dev/zero"), "/dev/zero: more than the 134217728 bytes that are read at most");
  fs::remove_all(directory);
}

// Random damage. The seed is fixed: a failure repeats.

class Damage {
 public:
  explicit Damage(std::uint32_t seed) : random_(seed) {}

  std::string damaged(const std::string& valid) {
    std::string text = valid;
    const std::size_t times = 1 + below(3);
    for (std::size_t i = 0; i < times && !text.empty(); ++i) once(text);
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_()) % n; }

  void once(std::string& text) {
    static const std::vector<std::string> tokens = {"null",
                                                    "true",
                                                    "-1",
                                                    "0",
                                                    "1e308",
                                                    "1e-400",
                                                    "1e999",
                                                    "18446744073709551615",
                                                    "-9223372036854775808",
                                                    "\"\"",
                                                    "{}",
                                                    "[]",
                                                    "[[]]",
                                                    "{",
                                                    "}",
                                                    "[",
                                                    "]",
                                                    ",",
                                                    ":",
                                                    "\"",
                                                    "NaN",
                                                    "\\u00",
                                                    "\xff",
                                                    "\n",
                                                    "0.5",
                                                    "\"ok\"",
                                                    "9223372036854775808"};
    const std::size_t at = below(text.size());
    switch (below(6)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, 1 + below(20));
        break;
      case 2:
        text.insert(at, tokens[below(tokens.size())]);
        break;
      case 3:
        text.insert(at, text.substr(below(text.size()), below(200)));
        break;
      case 4:
        text.resize(at);
        break;
      default:  // a value by another
        const std::size_t colon = text.find(": ", at);
        if (colon == std::string::npos) break;
        const std::size_t end = text.find_first_of(",}\n", colon + 2);
        text.replace(colon + 2, end == std::string::npos ? end : end - colon - 2,
                     tokens[below(tokens.size())]);
    }
  }

  std::mt19937 random_;
};

// Every damaged `valid` is either refused by `read` with `code` in one line, or read. Returns how many were
// read.
template <class Read>
int survive(const std::string& valid, int times, Exit code, Read read) {
  Damage damage(20261130);
  int survivors = 0;
  for (int i = 0; i < times; ++i) {
    const std::string text = damage.damaged(valid);
    try {
      read(text);
      ++survivors;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      const std::string message = error.what();
      EXPECT_EQ(message.find_first_of("\r\n"), std::string::npos) << message;
      EXPECT_FALSE(message.empty());
    }
    if (testing::Test::HasFailure()) break;
  }
  return survivors;
}

TEST(DamagedFiles, ResultsAreRefusedOrReadAndWrittenAgain) {
  const int read = survive(valid_text(), 8000, Exit::usage, [](const std::string& text) {
    const ResultFile file = io::parse_result(text, "damaged.json");
    const std::string again = io::to_json(file);
    EXPECT_EQ(io::to_json(io::parse_result(again, "again.json")), again);
    EXPECT_FALSE(io::to_csv(file).empty());
  });
  EXPECT_GT(read, 100);
  EXPECT_LT(read, 7000);
}

TEST(DamagedFiles, Suites) {
  const std::string valid = R"({"schema": "fdbench.suite/1.0", "name": "x", "description": "y", "problems": [
    {"seq": [128, 512], "heads": [32, 64], "kv_heads": 8, "dim": 128, "dtype": ["bf16", "fp16"]},
    {"seq": 1, "heads": 1}]})";
  const int read = survive(valid, 8000, Exit::usage, [](const std::string& text) {
    EXPECT_FALSE(io::parse_suite(text, "damaged.json").problems.empty());
  });
  EXPECT_GT(read, 30);
}

TEST(DamagedFiles, FakeScripts) {
  const std::string valid =
      R"({"schema": "fdbench.fake/1.0", "device": {"name": "Tiny", "sms": 26}, "timer_step_ns": 1,
    "clock_mhz": [1980, 900], "variants": {"fake_roof": {"ns": [100, 101], "error": 0.5, "behaviour": "nan",
    "at": "launch", "after": 3, "void_every": 4, "reason": "r"}, "fake_other": {"ns": 7}}})";
  const int read = survive(valid, 8000, Exit::usage, [](const std::string& text) {
    for (const auto& [name, variant] : io::parse_fake_script(text, "damaged.json").variants) {
      EXPECT_FALSE(variant.ns.empty());
    }
  });
  EXPECT_GT(read, 30);
}

TEST(DamagedFiles, WorkMessages) {
  WorkRequest request;
  request.problem = {8192, 32, 8, 128, Dtype::bf16, 0.5f};
  request.items = {{"a", {}}, {"b", {}}};
  request.shapes = {request.problem};
  EXPECT_GT(survive(io::encode(request), 4000, Exit::failed,
                    [](const std::string& text) { io::decode_request(text); }),
            15);
  const WorkEvent round = RoundDone{3, {0, 1}, {100.5, 200.25}, {1980.0, 0.0}, {0, 2}};
  EXPECT_GT(
      survive(io::encode(round), 4000, Exit::failed, [](const std::string& text) { io::decode_event(text); }),
      15);
}

}  // namespace
}  // namespace fdbench
