#include "tune/profile_lookup.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fdbench::tune {
namespace {

const ProfileEnvironment kHere{"NVIDIA H200", 132, 90, 580, 13};
const Problem kProblem{8192, 32, 8, 128, Dtype::bf16, {}};

Variant variant_of(int version = 1) {
  Variant variant;
  variant.name = "split_kv_tma";
  variant.tuning_version = version;
  return variant;
}

ProfileEntry entry_of(std::int64_t seq, std::int64_t splits) {
  ProfileEntry entry;
  entry.key.environment = kHere;
  entry.key.variant = "split_kv_tma";
  entry.key.dim = 128;
  entry.key.heads = 32;
  entry.key.kv_heads = 8;
  entry.key.bucket = seq_bucket(seq);
  entry.seq = seq;
  entry.tuning.set("splits", splits);
  entry.source_hash = "abc";
  return entry;
}

TuningProfile profile_of(std::vector<ProfileEntry> entries, std::string path = "own.json") {
  return {std::move(path), std::move(entries)};
}

Lookup look(const TuningProfile& profile, const Problem& problem, const Variant& variant = variant_of(),
            const ProfileEnvironment& here = kHere) {
  return look_up(std::span(&profile, 1), here, variant, problem, "abc");
}

TEST(SeqBucket, CoversEveryLengthOnceByRatio) {
  std::int64_t next = 1;
  while (next < 1'000'000) {
    const SeqBucket bucket = seq_bucket(next);
    EXPECT_EQ(bucket.least, next);
    EXPECT_EQ(seq_bucket(bucket.most), bucket);
    next = bucket.most + 1;
  }
  EXPECT_TRUE(seq_bucket(8192).holds(8192));
  EXPECT_EQ(seq_bucket(8192), seq_bucket(11585));
  EXPECT_NE(seq_bucket(8192), seq_bucket(11586));
  EXPECT_EQ(seq_bucket(8192), seq_bucket(5793));
}

TEST(ProfileLookup, ExactBucketAndFallback) {
  const auto profile = profile_of({entry_of(8192, 16), entry_of(16384, 16)});
  auto found = look(profile, kProblem);
  ASSERT_TRUE(found.match);
  EXPECT_EQ(found.match->answer, ProfileAnswer::exact);
  EXPECT_EQ(found.match->tuning.get("splits"), 16);
  EXPECT_TRUE(found.match->notes.empty());

  Problem near = kProblem;
  near.seq = 9000;
  found = look(profile, near);
  EXPECT_EQ(found.match->answer, ProfileAnswer::bucket);
  EXPECT_EQ(found.match->entry->seq, 8192);

  for (const Problem& other :
       {Problem{512, 32, 8, 128, Dtype::bf16, {}}, Problem{8192, 32, 32, 128, Dtype::bf16, {}},
        Problem{8192, 32, 8, 64, Dtype::bf16, {}}, Problem{8192, 32, 8, 128, Dtype::fp16, {}}}) {
    found = look(profile, other);
    ASSERT_TRUE(found.match);
    EXPECT_EQ(found.match->answer, ProfileAnswer::fallback);
    EXPECT_TRUE(found.match->tuning.empty());
  }
  Variant unknown = variant_of();
  unknown.name = "flash_decode_tma";
  EXPECT_FALSE(look(profile, kProblem, unknown).match) << "the profile knows nothing of it";
}

TEST(ProfileLookup, AnotherGpuOrTuningVersionIsNotUsed) {
  const auto profile = profile_of({entry_of(8192, 16)});
  for (const ProfileEnvironment& other : {ProfileEnvironment{"NVIDIA H100", 132, 90, 580, 13},
                                          ProfileEnvironment{"NVIDIA H200", 78, 90, 580, 13},
                                          ProfileEnvironment{"NVIDIA H200", 132, 100, 580, 13}}) {
    EXPECT_FALSE(look(profile, kProblem, variant_of(), other).match);
    ASSERT_TRUE(foreign(profile, other));
    EXPECT_NE(foreign(profile, other)->find("not used"), std::string::npos);
  }
  EXPECT_FALSE(foreign(profile, kHere));
  const Lookup found = look(profile, kProblem, variant_of(2));
  EXPECT_FALSE(found.match);
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_NE(found.notes[0].find("tuning_version 1"), std::string::npos);
}

TEST(ProfileLookup, AnotherTuningVersionIsNoMatterOnceTunedAgain) {
  auto again = entry_of(8192, 8);
  again.key.tuning_version = 2;
  const auto profile = profile_of({entry_of(8192, 16), again});
  const Lookup found = look(profile, kProblem, variant_of(2));
  ASSERT_TRUE(found.match);
  EXPECT_EQ(found.match->tuning, again.tuning);
  EXPECT_TRUE(found.notes.empty());
}

TEST(ProfileLookup, AnotherDriverToolkitOrSourceIsUsedAndSaid) {
  auto entry = entry_of(8192, 16);
  entry.key.environment.driver_major = 570;
  entry.key.environment.toolkit_major = 12;
  entry.source_hash = "old";
  Lookup found = look(profile_of({entry}), kProblem);
  ASSERT_TRUE(found.match);
  EXPECT_EQ(found.match->answer, ProfileAnswer::exact);
  ASSERT_EQ(found.match->notes.size(), 3u);
  EXPECT_NE(found.match->notes[0].find("driver 570"), std::string::npos);
  // One of this very environment goes first, whatever the order.
  auto profile = profile_of({entry, entry_of(8192, 32)});
  EXPECT_EQ(look(profile, kProblem).match->tuning.get("splits"), 32);
  // But exactness counts for more than the environment.
  profile = profile_of({entry, entry_of(9000, 32)});
  EXPECT_EQ(look(profile, kProblem).match->tuning.get("splits"), 16);
}

TEST(ProfileLookup, AnotherInstructionSetIsSaidWhereBothAreKnown) {
  auto entry = entry_of(8192, 16);
  LaunchPlan planned;
  const auto note = [&] {
    const auto profile = profile_of({entry});
    return other_isa(*look(profile, kProblem).match, planned);
  };
  EXPECT_FALSE(note());
  planned.isa = "AVX2";
  EXPECT_FALSE(note()) << "an older profile";
  entry.isa = "AVX2";
  EXPECT_FALSE(note());
  entry.isa = "AMX";
  EXPECT_EQ(note(), "own.json: tuned with instruction set AMX, and here it is AVX2: used all the same");
  planned.isa.clear();
  EXPECT_FALSE(note());
}

TEST(ProfileLookup, TheUsersOwnIsAskedFirst) {
  const TuningProfile profiles[] = {profile_of({entry_of(8192, 4)}),
                                    profile_of({entry_of(8192, 16), entry_of(512, 2)}, "shipped.json")};
  EXPECT_EQ(look_up(profiles, kHere, variant_of(), kProblem, "abc").match->path, "own.json");
  Problem shorter = kProblem;
  shorter.seq = 512;
  EXPECT_EQ(look_up(profiles, kHere, variant_of(), shorter, "abc").match->path, "shipped.json");
  shorter.seq = 100'000;
  const Lookup none = look_up(profiles, kHere, variant_of(), shorter, "abc");
  EXPECT_EQ(none.match->answer, ProfileAnswer::fallback);
  EXPECT_EQ(none.match->path, "own.json");
  EXPECT_FALSE(look_up({}, kHere, variant_of(), kProblem, "abc").match);
}

TEST(ProfileLookup, OneEnvironmentNeverOverwritesAnothers) {
  TuningProfile profile;
  put_entry(profile, entry_of(8192, 16));
  auto newer = entry_of(8192, 32);
  newer.key.environment.driver_major = 590;
  put_entry(profile, newer);
  EXPECT_EQ(profile.entries.size(), 2u);
  put_entry(profile, entry_of(9000, 8));  // the same bucket
  ASSERT_EQ(profile.entries.size(), 2u);
  EXPECT_EQ(profile.entries[0].tuning.get("splits"), 8);
  EXPECT_EQ(profile.entries[1].tuning.get("splits"), 32);
}

TEST(ProfileName, IsAFileName) {
  EXPECT_EQ(profile_name("NVIDIA H200"), "nvidia-h200");
  EXPECT_EQ(profile_name("Intel(R) Xeon(R) @ 2.0GHz"), "intel-r-xeon-r-2-0ghz");
  EXPECT_EQ(profile_name("../.."), "device");
}

}  // namespace
}  // namespace fdbench::tune
