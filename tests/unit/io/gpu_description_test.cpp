#include "io/gpu_description.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "rules/occupancy.h"

namespace fdbench::io {
namespace {

const std::vector<std::string> kInstalled = {FDBENCH_REPO "/configs/gpus"};

std::string message(const std::string& text) {
  try {
    parse_gpu(text, "gpu.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    return error.what();
  }
  return {};
}

TEST(GpuDescription, EveryInstalledOneHasSourcesAndTheLimitsOfItsCapability) {
  const auto names = gpu_names(kInstalled);
  for (const char* wanted : {"rtx5060", "rtx5060ti", "rtx5070", "rtx5070ti", "rtx5080", "rtx5090", "rtx4090",
                             "a100", "l40s", "h100", "h200", "b200"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), wanted), names.end()) << wanted;
  }
  for (const std::string& name : names) {
    const GpuDescription gpu = find_gpu(name, kInstalled);
    EXPECT_EQ(gpu.sources.size(), 10u) << name;
    EXPECT_EQ(gpu.device.kind, BackendKind::cuda);
    const auto limits = rules::sm_limits(gpu.device.cc);
    ASSERT_TRUE(limits) << name;
    EXPECT_EQ(gpu.device.smem_per_sm, limits->smem_per_sm) << name;
    EXPECT_EQ(gpu.device.smem_per_block, limits->smem_per_cta) << name;
    EXPECT_EQ(gpu.device.threads_per_sm, limits->threads_per_sm) << name;
    EXPECT_EQ(gpu.device.ctas_per_sm, limits->ctas_per_sm) << name;
    EXPECT_EQ(gpu.device.regs_per_sm, limits->regs_per_sm) << name;
    EXPECT_GT(*gpu.device.bandwidth_datasheet, 300e9) << name;
    EXPECT_GT(gpu.device.l2_bytes, 10 << 20) << name;
  }
}

TEST(GpuDescription, RefusesWhatItDoesNotUnderstand) {
  EXPECT_NE(message("{}").find("schema"), std::string::npos);
  EXPECT_NE(message(R"({"schema": "fdbench.gpu/1.0", "name": "x", "cores": 3})").find("cores"),
            std::string::npos);
  EXPECT_NE(message(R"({"schema": "fdbench.gpu/1.0", "name": "x"})").find("cc"), std::string::npos);
  EXPECT_NE(message(R"({"schema": "fdbench.gpu/1.0", "name": "x", "cc": 90})").find("cc"), std::string::npos);
  EXPECT_NE(message(R"({"schema": "fdbench.gpu/1.0", "name": "x", "cc": {"value": 90, "source": ""}})")
                .find("cc.source"),
            std::string::npos);
  EXPECT_NE(message(R"({"schema": "fdbench.gpu/1.0", "name": "x", "cc": {"value": 9, "source": "y"}})")
                .find("cc.value"),
            std::string::npos);
}

TEST(GpuDescription, UnknownNamesListTheKnown) {
  try {
    find_gpu("h300", kInstalled);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("--gpu h300"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("h200"), std::string::npos);
  }
}

}  // namespace
}  // namespace fdbench::io
