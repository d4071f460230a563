#include "io/suite.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "io/fake_script.h"
#include "io/file.h"

namespace fdbench {
namespace {

namespace fs = std::filesystem;

const std::string kSuites = FDBENCH_REPO "/configs/suites";

std::string suite_text(const std::string& problems) {
  return "{\"schema\": \"fdbench.suite/1.0\",\n \"name\": \"x\",\n \"problems\": [" + problems + "]}";
}

std::vector<std::string> shapes(const io::Suite& suite) {
  std::vector<std::string> ids;
  for (const Problem& problem : suite.problems) ids.push_back(shape_id(problem));
  return ids;
}

template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "was read";
}

std::string suite_refusal(const std::string& text) {
  return refusal([&] { io::parse_suite(text, "my.json"); });
}

TEST(Suite, ListsGiveAllCombinationsInTheirOrder) {
  const io::Suite suite = io::parse_suite(
      suite_text(R"({"seq": [512, 64], "heads": [8, 4], "kv_heads": [4, 1], "dtype": ["fp16", "bf16"]},
                    {"seq": 7, "heads": 3, "dim": [64, 128]})"),
      "x.json");
  const auto ids = shapes(suite);
  ASSERT_EQ(ids.size(), 18u);
  EXPECT_EQ(ids[0], "seq=512/heads=8/kv_heads=4/dim=128/fp16");
  EXPECT_EQ(ids[1], "seq=64/heads=8/kv_heads=4/dim=128/fp16");
  EXPECT_EQ(ids[2], "seq=512/heads=8/kv_heads=4/dim=128/bf16");
  EXPECT_EQ(ids[4], "seq=512/heads=8/kv_heads=1/dim=128/fp16");
  EXPECT_EQ(ids[8], "seq=512/heads=4/kv_heads=4/dim=128/fp16");
  EXPECT_EQ(ids[16], "seq=7/heads=3/kv_heads=3/dim=64/bf16");
  EXPECT_EQ(ids[17], "seq=7/heads=3/kv_heads=3/dim=128/bf16");
}

TEST(Suite, BrokenFilesAreRefusedInOneLine) {
  EXPECT_EQ(suite_refusal("{\"schema\": \"fdbench.suite/1.0\",\n  \"name\": x}"),
            "my.json:2:11: not JSON here: unexpected \"x\"; expected a suite of schema fdbench.suite/1.x");
  EXPECT_EQ(suite_refusal("{\"schema\": \"fdbench.result/1.0\"}"),
            "my.json: schema must be fdbench.suite/1.x (all that this build reads), not the string "
            "\"fdbench.result/1.0\"");
  EXPECT_EQ(suite_refusal(suite_text("")),
            "my.json: problems must be a list of at least one shape, not an empty array");
  EXPECT_EQ(
      suite_refusal(suite_text(R"({"seq": 1, "head": 2})")),
      "my.json: problems[0] has an unknown key \"head\"; the keys are seq, heads, kv_heads, dim, dtype");
  EXPECT_EQ(suite_refusal(suite_text(R"({"seq": 1})")),
            "my.json: problems[0] has no \"heads\"; expected a suite of schema fdbench.suite/1.x");
  EXPECT_EQ(suite_refusal(suite_text(R"({"seq": 1, "heads": 1}, {"seq": [1, 0], "heads": 2})")),
            "my.json: problems[1].seq[1] must be an integer of at least 1, not 0");
  EXPECT_EQ(suite_refusal(suite_text(R"({"seq": [], "heads": 2})")),
            "my.json: problems[0].seq must be a value or a list of at least one, not an empty array");
  EXPECT_EQ(suite_refusal(suite_text(R"({"seq": 8, "heads": 33, "kv_heads": 8})")),
            "my.json: problems[0] makes no problem: heads 33 is not a multiple of kv_heads 8");
  EXPECT_EQ(
      suite_refusal(suite_text(R"({"seq": [8, 8], "heads": 1})")),
      "my.json: problems[0] repeats the shape seq=8/heads=1/kv_heads=1/dim=128/bf16; a suite has each once");
  EXPECT_EQ(suite_refusal(suite_text(R"({"seq": 9223372036854775807, "heads": 1})")),
            "my.json: problems[0] makes no problem: the tensors exceed 2^62 bytes");
}

TEST(Suite, MoreShapesThanAnyoneMeasuresAreRefused) {
  std::string seqs = "1";
  for (int i = 2; i <= 10001; ++i) seqs += ',' + std::to_string(i);
  EXPECT_EQ(suite_refusal(suite_text("{\"seq\": [" + seqs + "], \"heads\": 1}")),
            "my.json: problems[0] goes past the 10000 shapes that a suite may have");
}

TEST(ShippedSuites, AllCanBeUsedAndAreCalledLikeTheirFiles) {
  const auto listings = io::list_suites({kSuites});
  std::vector<std::string> names;
  for (const io::SuiteListing& listing : listings) {
    names.push_back(listing.name);
    EXPECT_EQ(listing.error, "");
    EXPECT_EQ(listing.suite.name, listing.name);
    EXPECT_FALSE(listing.suite.description.empty()) << listing.name;
  }
  for (const std::string name : {"ci", "decode", "default", "seed", "smoke"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

TEST(ShippedSuites, SeedIsTheSeedsTable) {
  const io::Suite seed = io::find_suite("seed", {"/nowhere", kSuites});
  std::vector<std::string> expected;
  for (const std::string seq : {"8192", "16384", "32768", "65536", "131072", "131073"}) {
    expected.push_back("seq=" + seq + "/heads=32/kv_heads=32/dim=128/bf16");
  }
  EXPECT_EQ(shapes(seed), expected);
}

TEST(ShippedSuites, DecodeIsTheTableThatKernelsAreHeldTo) {
  const io::Suite decode = io::find_suite("decode", {kSuites});
  std::vector<std::string> expected;
  const auto add = [&](int heads, int kv_heads, const std::vector<int>& seqs) {
    for (const int seq : seqs) {
      expected.push_back(shape_id({seq, heads, kv_heads, 128, Dtype::bf16, std::nullopt}));
    }
  };
  add(32, 32, {128, 512, 1024, 2048, 8192, 32768, 131072});
  add(32, 8, {128, 512, 1024, 2048, 8192, 32768, 131072});
  add(64, 8, {2048, 8192, 32768, 131072});
  add(28, 4, {8192, 32768, 131072});
  add(40, 8, {8192, 32768, 131072});
  add(16, 2, {8192, 32768, 131072});
  add(8, 1, {2048, 8192, 32768, 131072});
  add(16, 1, {2048, 8192, 32768, 131072});
  EXPECT_EQ(shapes(decode), expected);
}

class SuiteDirectories : public testing::Test {
 protected:
  SuiteDirectories() : root_(fs::temp_directory_path() / ("fdbench_suites_" + std::to_string(::getpid()))) {
    fs::create_directories(root_ / "a");
    fs::create_directories(root_ / "b");
    io::write_atomically(path("a/mine.json"), suite_text(R"({"seq": 1, "heads": 1})"));
    io::write_atomically(path("b/mine.json"), suite_text(R"({"seq": 2, "heads": 1})"));
    io::write_atomically(path("b/broken.json"), "{");
    io::write_atomically(path("b/notes.txt"), "");
  }
  ~SuiteDirectories() override { fs::remove_all(root_); }
  std::string path(const std::string& name) const { return (root_ / name).string(); }

  fs::path root_;
};

TEST_F(SuiteDirectories, TheFirstDirectoryThatHasTheNameWins) {
  EXPECT_EQ(io::find_suite("mine", {path("a"), path("b")}).problems.at(0).seq, 1);
  EXPECT_EQ(io::find_suite("mine", {path("b"), path("a")}).problems.at(0).seq, 2);
  EXPECT_EQ(io::find_suite(path("b/mine.json"), {path("a")}).problems.at(0).seq, 2);
}

TEST_F(SuiteDirectories, WhatIsNotThereIsAnsweredWithWhatIs) {
  EXPECT_EQ(refusal([&] {
              io::find_suite("yours", {path("a"), path("b")});
            }),
            "--suite yours: no such suite; there are broken, mine; or name a FILE.json");
  EXPECT_EQ(refusal([&] { io::find_suite("yours", {}); }),
            "--suite yours: no such suite; none is installed; or name a FILE.json");
  EXPECT_EQ(refusal([&] { io::find_suite("yours.json", {path("a")}); }),
            "yours.json: cannot be read: No such file or directory");
}

TEST_F(SuiteDirectories, ABrokenSuiteIsListedWithItsError) {
  const auto listings = io::list_suites({path("a"), path("b")});
  ASSERT_EQ(listings.size(), 2u);
  EXPECT_EQ(listings[0].name, "broken");
  EXPECT_EQ(listings[0].error,
            path("b/broken.json") +
                ":1:2: the text ends in the middle of a value (truncated?); expected a suite of "
                "schema fdbench.suite/1.x");
  EXPECT_EQ(listings[1].name, "mine");
  EXPECT_EQ(listings[1].path, path("a/mine.json"));
}

TEST(FakeScriptFile, EveryFieldIsRead) {
  const FakeScript script = io::parse_fake_script(R"({"schema": "fdbench.fake/1.0",
      "device": {"name": "Tiny", "sms": 26, "smem_per_block": 49152, "mig": true, "power_limit_w": 75.5},
      "timer_step_ns": 2, "sample_s": 0.25, "clock_mhz": [1980, 900],
      "variants": {"fake_roof": {"ns": [100, 101.5]},
                   "fake_other": {"ns": 7, "error": 0.5, "behaviour": "throw", "at": "prepare", "after": 3,
                                  "void_every": 4, "reason": "no"},
                   "fake_candidate": {"behaviour": "lost_device"}}})",
                                                  "s.json");
  EXPECT_EQ(script.device.kind, BackendKind::fake);
  EXPECT_EQ(script.device.name, "Tiny");
  EXPECT_EQ(script.device.sms, 26);
  EXPECT_EQ(script.device.smem_per_block, 49152);
  EXPECT_EQ(script.device.l2_bytes, 32 << 20);  // as nobody said otherwise
  EXPECT_EQ(script.device.mig, true);
  EXPECT_EQ(script.device.power_limit_w, 75.5);
  EXPECT_EQ(script.timer_step_ns, 2.0);
  EXPECT_EQ(script.sample_s, 0.25);
  EXPECT_EQ(script.clock_mhz, (std::vector<double>{1980.0, 900.0}));
  ASSERT_EQ(script.variants.size(), 3u);
  EXPECT_EQ(script.variants.at("fake_roof").ns, (std::vector<double>{100.0, 101.5}));
  const FakeVariantScript& other = script.variants.at("fake_other");
  EXPECT_EQ(other.ns, std::vector<double>{7.0});
  EXPECT_EQ(other.error, 0.5);
  EXPECT_EQ(other.behaviour, FakeBehaviour::throws);
  EXPECT_TRUE(other.at_prepare);
  EXPECT_EQ(other.after, 3);
  EXPECT_EQ(other.void_every, 4);
  EXPECT_EQ(other.reason, "no");
  EXPECT_EQ(script.variants.at("fake_candidate").behaviour, FakeBehaviour::lost_device);
  EXPECT_FALSE(script.variants.at("fake_candidate").at_prepare);
}

TEST(FakeScriptFile, AllMayBeLeftOut) {
  const FakeScript script = io::parse_fake_script(R"({"schema": "fdbench.fake/1.0"})", "s.json");
  EXPECT_EQ(script.device.kind, BackendKind::fake);
  EXPECT_GT(script.device.sms, 0);
  EXPECT_GT(script.device.memory_available_bytes, 0);
  EXPECT_TRUE(script.variants.empty());
}

TEST(FakeScriptFile, MistakesAreNamed) {
  const auto message = [](const std::string& rest) {
    return refusal(
        [&] { io::parse_fake_script("{\"schema\": \"fdbench.fake/1.0\", " + rest + "}", "s.json"); });
  };
  EXPECT_EQ(message(R"("variants": {"roof": {}})"),
            "s.json: variants.roof is no fake variant; there are fake_candidate, fake_oracle, fake_other, "
            "fake_reference, fake_roof");
  EXPECT_EQ(message(R"("variants": {"fake_roof": {"behaviour": "sulk"}})"),
            "s.json: variants.fake_roof.behaviour must be one of ok, unsupported, throw, lost_device, crash, "
            "hang, nan, "
            "writes_guard, dirty_zeroed, not the string \"sulk\"");
  EXPECT_EQ(message(R"("variants": {"fake_roof": {"ns": [1, -1]}})"),
            "s.json: variants.fake_roof.ns[1] must be a number of at least 0, not -1");
  EXPECT_EQ(message(R"("variants": {"fake_roof": {"ns": []}})"),
            "s.json: variants.fake_roof.ns must be a number or a list of at least one, not an empty array");
  EXPECT_EQ(message(R"("device": {"smm": 1})"),
            "s.json: device.smm is no field of a device (docs/results.md has them)");
  EXPECT_EQ(
      message(R"("device": {"sms": "1"})"),
      "s.json: device.sms must be an integer of at least 0 and at most 2147483647, not the string \"1\"");
  EXPECT_EQ(
      message(R"("tempo": 1)"),
      "s.json: the file has an unknown key \"tempo\"; the keys are schema, device, timer_step_ns, sample_s, "
      "clock_mhz, variants");
}

}  // namespace
}  // namespace fdbench
