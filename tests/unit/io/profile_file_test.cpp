#include "io/profile_file.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"

namespace fdbench::io {
namespace {

TuningProfile example() {
  TuningProfile profile;
  profile.path = "p.json";
  ProfileEntry entry;
  ProfileKey& key = entry.key;
  key.environment.device = "NVIDIA \"H200\"";
  key.environment.sms = 132;
  key.environment.cc = 90;
  key.environment.driver_major = 580;
  key.environment.toolkit_major = 13;
  key.variant = "split_kv_tma";
  key.tuning_version = 2;
  key.dtype = Dtype::fp16;
  key.dim = 128;
  key.heads = 32;
  key.kv_heads = 8;
  key.bucket = seq_bucket(8192);
  entry.seq = 8192;
  entry.tuning.set("splits", 16);
  entry.ns = 13064.5;
  entry.ties.resize(2);
  entry.ties[1].set("splits", 12);
  entry.runner_up = TuningPoint{};
  entry.margin = 0.012;
  entry.margin_ci95 = Bounds{-0.002, 0.02};
  entry.won = 0.65;
  entry.choosing_rounds = entry.scoring_rounds = 20;
  entry.splits = 16;
  entry.chunk = 512;
  entry.workspace_bytes = 4096;
  entry.gains.push_back({"default", {}, 13500.0, 0.033, Bounds{0.02, 0.04}});
  entry.gains.push_back({"rule:fa3", entry.ties[1], 13100.0, 0.003, {}});
  entry.strategy = "halving";
  entry.points = 200;
  entry.points_measured = 31;
  entry.samples = 240;
  entry.source_hash = "0123456789ab";
  entry.tool = "0.1.0 (abc)";
  entry.when = "2026-01-02T03:04:05Z";
  profile.entries.push_back(entry);
  return profile;
}

std::string error_of(const std::string& text) {
  try {
    parse_profile(text, "p.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    return error.what();
  }
  return "";
}

TEST(ProfileFile, ReadsWhatItWrote) {
  const std::string text = to_json(example());
  const TuningProfile back = parse_profile(text, "p.json");
  EXPECT_EQ(to_json(back), text);
  ASSERT_EQ(back.entries.size(), 1u);
  EXPECT_EQ(back.entries[0].key, example().entries[0].key);
  EXPECT_EQ(back.entries[0].ties, example().entries[0].ties);
  EXPECT_EQ(back.entries[0].gains[0].ci95->hi, 0.04);
}

TEST(ProfileFile, KeepsFieldsThatItDoesNotKnow) {
  const auto with = [](std::string text, const std::string& at, const std::string& field) {
    return text.replace(text.find(at), at.size(), field + at);
  };
  TuningProfile two = example();
  two.entries.push_back(two.entries[0]);
  two.entries[1].key.heads = 64;
  const std::string plain = to_json(two);
  std::string text = with(plain, "\"entries\"", "\"note\": [1, {\"a\": null}], ");
  text = with(text, "\"splits\": 16, \"chunk\"", "\"waves\": 1.5, ");  // of the first entry's plan
  text = with(text, "\"seq\": 8192", "\"owner\": \"me\", ");
  text = with(text, "\"over\": \"rule:fa3\"", "\"why\": \"x\", ");
  TuningProfile read = parse_profile(text, "p.json");
  const std::string again = to_json(read);
  for (const char* part :
       {"\"note\": [1, {\"a\": null}]", "\"waves\": 1.5", "\"owner\": \"me\"", "\"why\": \"x\""})
    EXPECT_NE(again.find(part), std::string::npos) << part << " in " << again;
  EXPECT_EQ(to_json(parse_profile(again, "p.json")), again);
  // Another entry's are its own; those of one that is replaced go with it.
  EXPECT_TRUE(read.entries[1].as_read.empty());
  read.entries[0] = two.entries[0];
  read.as_read.clear();
  EXPECT_EQ(to_json(read), plain);
}

TEST(ProfileFile, SaysWhereItIsBroken) {
  const std::string text = to_json(example());
  EXPECT_EQ(error_of("{\n  \"schema\": oops").rfind("p.json:2:13: ", 0), 0u)
      << error_of("{\n  \"schema\": oops");
  EXPECT_NE(error_of(text.substr(0, text.size() / 2)).find("truncated"), std::string::npos);
  EXPECT_NE(error_of("{\"schema\": \"fdbench.result/1.0\"}").find("profile"), std::string::npos);
  auto profile = example();
  profile.entries[0].seq = 100;
  EXPECT_NE(error_of(to_json(profile)).find("entries[0].seq must be within its key's seq_bucket"),
            std::string::npos);
  profile = example();
  profile.entries.push_back(profile.entries[0]);
  EXPECT_NE(error_of(to_json(profile)).find("entries[1] repeats the key of entry 0"), std::string::npos);
  std::string wrong = text;
  wrong.replace(wrong.find("132"), 3, "\"x\"");
  EXPECT_NE(error_of(wrong).find("sms must be"), std::string::npos);
}

TEST(ProfileFile, RefusesWhatNoTuningGives) {
  const auto broken = [](const auto& breaking) {
    auto profile = example();
    breaking(profile.entries[0]);
    return error_of(to_json(profile));
  };
  EXPECT_EQ(broken([](ProfileEntry& e) { e.ns = -1.0; }),
            "p.json: entries[0].median_ns must be at least 0, not -1");
  EXPECT_EQ(broken([](ProfileEntry& e) { e.won = 1.5; }),
            "p.json: entries[0].won must be a share, 0 ... 1, not 1.5");
  EXPECT_EQ(broken([](ProfileEntry& e) { e.margin = -2.0; }),
            "p.json: entries[0].margin must be at least -1, not -2");
  EXPECT_EQ(broken([](ProfileEntry& e) { e.gains[1].gain = -1.0; }),
            "p.json: entries[0].gains[1].gain must be above -1, not -1");
  EXPECT_EQ(broken([](ProfileEntry& e) { e.gains[0].ns = -3.0; }),
            "p.json: entries[0].gains[0].median_ns must be at least 0, not -3");
  EXPECT_EQ(broken([](ProfileEntry& e) { e.key.kv_heads = 5; }),
            "p.json: entries[0] is of no problem: heads 32 is not a multiple of kv_heads 5");
  // A terminal would obey these.
  EXPECT_EQ(broken([](ProfileEntry& e) { e.key.variant = "a\x1b[2J"; }),
            "p.json: entries[0].key.variant must be without control characters, not the string "
            "\"a\\u001b[2J\"");
  EXPECT_NE(broken([](ProfileEntry& e) { e.key.environment.device += '\n'; }), "");
  EXPECT_NE(broken([](ProfileEntry& e) { e.tool += '\r'; }), "");
  EXPECT_NE(broken([](ProfileEntry& e) { e.gains[0].over += '\x7f'; }), "");
  EXPECT_EQ(broken([](ProfileEntry& e) { e.tuning.set("a\tb", 1); }),
            "p.json: entries[0].tuning has an axis with a control character in its name");
}

TEST(ProfileFile, InstructionSetsAreThereWhereThereIsAChoice) {
  TuningProfile profile = example();
  EXPECT_EQ(to_json(profile).find("\"isa\""), std::string::npos);
  EXPECT_EQ(parse_profile(to_json(profile), "p.json").entries[0].isa, "");
  profile.entries[0].isa = "AMX";
  EXPECT_EQ(parse_profile(to_json(profile), "p.json").entries[0].isa, "AMX");
  EXPECT_NE(profile_csv(profile).find(",AMX\r\n"), std::string::npos);
}

TEST(ProfileFile, CsvQuotesEveryText) {
  auto profile = example();
  profile.entries[0].strategy = "a,b";
  EXPECT_NE(profile_csv(profile).find(",\"a,b\","), std::string::npos);
}

TEST(ProfileFile, ExportsHaveARowAnEntry) {
  const std::string csv = profile_csv(example());
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 2);
  const std::string header = csv.substr(0, csv.find('\r'));
  std::string row = csv.substr(csv.find('\n') + 1);
  EXPECT_EQ(
      row.rfind("\"NVIDIA "
                "\"\"H200\"\"\",132,90,580,13,split_kv_tma,2,fp16,128,32,8,5793,11585,8192,splits=16,16,512",
                0),
      0u)
      << row;
  EXPECT_EQ(std::count(header.begin(), header.end(), ','), std::count(row.begin(), row.end(), ','));
}

TEST(ProfileFile, AHeaderHasWhatWasMeasuredAndWhatWasTuned) {
  const auto row = [](const TuningProfile& profile) {
    const std::string header = profile_header(profile);
    const auto begin = header.find("\"split_kv_tma\", 2, \"fp16\"");
    return header.substr(begin, header.find('\n', begin) - begin);
  };
  TuningProfile profile = example();
  EXPECT_EQ(row(profile),
            "\"split_kv_tma\", 2, \"fp16\", 128, 32, 8, 5793, 11585, 8192, \"splits=16\", Tuned::splits, "
            "16, 512, 1, 13064.5},");
  profile.entries[0].tuning = {};
  EXPECT_NE(row(profile).find("\"default\", Tuned::own, 16, 512, 1,"), std::string::npos) << row(profile);
  profile.entries[0].tuning.set("chunk", 512);
  EXPECT_NE(row(profile).find("\"chunk=512\", Tuned::chunk, 16, 512, 1,"), std::string::npos);
}

TEST(ProfileFile, AHeaderKnowsWhatChunksAreRoundedTo) {
  const auto has = [](const TuningProfile& profile, const std::string& part) {
    return profile_header(profile).find(part) != std::string::npos;
  };
  TuningProfile profile = example();
  profile.entries.push_back(profile.entries[0]);
  ProfileEntry& other = profile.entries[1];
  other.key.bucket = seq_bucket(2048);
  other.seq = 2048;
  other.splits = 24;
  other.chunk = 96;  // of 85.3
  EXPECT_TRUE(has(profile, " 16, 512, 32,") && has(profile, " 24, 96, 32,"));
  // One that the same rounding does not make.
  other.chunk = 128;
  EXPECT_TRUE(has(profile, " 16, 512, 1,") && has(profile, " 24, 128, 1,"));
  // Up to 128, but also up to 64, 32, ...: a guess.
  profile.entries.erase(profile.entries.begin());
  profile.entries[0].splits = 17;
  EXPECT_TRUE(has(profile, " 17, 128, 1,"));
}

TEST(ProfileFile, AHeaderNamesAnEnvironmentOnce) {
  TuningProfile profile = example();
  for (int i = 0; i < 3; ++i) {
    profile.entries.push_back(profile.entries[0]);
    profile.entries.back().key.environment.driver_major += i % 2 == 0 ? 1 : 0;
    profile.entries.back().key.heads <<= i;
  }
  const std::string header = profile_header(profile);
  std::size_t named = 0;
  for (auto at = header.find("// Measured on "); at != std::string::npos;
       at = header.find("// Measured on ", at + 1))
    ++named;
  EXPECT_EQ(named, 2u) << header;
  EXPECT_NE(header.find("sm_90, driver 581, toolkit 13, by fdbench 0.1.0 (abc).\n"), std::string::npos);
}

TEST(ProfileFile, AMissingFileIsNone) {
  EXPECT_FALSE(read_profile("/nonexistent/p.json"));
  EXPECT_THROW(read_profile("/"), Error);
}

}  // namespace
}  // namespace fdbench::io
