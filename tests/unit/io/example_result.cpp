#include "example_result.h"

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "io/file.h"

namespace fdbench::io_test {

namespace {

RunInfo example_run() {
  RunInfo run;
  run.id = "20261130T101500Z-4711";
  run.command = "run";
  run.started = "2026-11-30T10:15:00Z";
  run.argv = {"fdbench", "run", "--seq", "8192", "--heads", "32"};
  run.seed = 1;
  run.inputs = "philox_sum4/1";
  run.processes = 2;
  run.tool = {"0.1.0", "1d9c632", "gcc 12.2.0", "13.0", "-O3 -DNDEBUG", true, "7c21d09be4f6"};
  run.host = {"AMD EPYC 9654", "Debian GNU/Linux 12", "6.1.0", 16};
  DeviceInfo& device = run.device;
  device.kind = BackendKind::cuda;
  device.index = 1;
  device.name = "NVIDIA H200";
  device.uuid = "GPU-4f1c2a9e-6b0d-5e37-8c14-d2a7903b6e55";
  device.cc = 90;
  device.sms = 132;
  device.l2_bytes = 62914560;
  device.memory_bytes = 150754820096;
  device.memory_available_bytes = 149000000000;
  device.bandwidth_datasheet = 4.8e12;
  device.smem_per_sm = 233472;
  device.smem_per_block = 232448;
  device.regs_per_sm = 65536;
  device.threads_per_sm = 2048;
  device.ctas_per_sm = 32;
  device.cooperative_launch = true;
  device.driver = "580.65.06";
  device.cublas = "13.0.0";
  device.power_limit_w = 700.0;
  device.mig = false;
  return run;
}

ResultRecord measured_row(const RunInfo& run) {
  ResultRecord row;
  row.problem = {8192, 32, 8, 128, Dtype::bf16, std::nullopt};
  row.variant = "flash_decode_tma";
  row.tuning_version = 3;
  row.tuning.set("stages", 4);
  row.tuning.set("chunk", 512);
  row.id = result_id(row.variant, row.problem, row.tuning, run.cache, run.timer);
  LaunchPlan plan;
  plan.grid = {16, 8, 1};
  plan.block = {160, 1, 1};
  plan.cluster = {1, 1, 1};
  plan.chunk = 512;
  plan.splits = 16;
  plan.tile = 64;
  plan.stages = 4;
  plan.dynamic_smem = 65600;
  plan.cooperative = true;
  plan.merge = "shared";
  plan.scratch_bytes = 266240;
  plan.zeroed_bytes = 32;
  plan.rule = "sm_multiple:1";
  row.plan = plan;
  row.source = "flag";
  row.flags = {"throttled", "launches_batched"};
  row.accuracy = Accuracy{0.00165, 0.0078125, 1.5e-7, "cuda_oracle"};
  TimeSummary time;
  time.n = 6;
  time.min = 13664.0;
  time.q1 = 13676.0;
  time.median = 13696.0;
  time.q3 = 13710.0;
  time.max = 13728.5;
  time.ci95 = Bounds{13664.0, 13728.5};
  time.stop = "max_time";
  time.void_samples = 2;
  time.set_aside = 1;
  time.samples = {{0, 0, 13688.0, 1980.0, false},      {0, 1, 13664.0, 1965.0, false},
                  {0, 2, 13704.0, 1980.0, false},      {1, 0, 13728.5, 0.0, false},
                  {1, 1, 100000.0 / 3.0, 900.0, true}, {1, 2, 13672.0, 1965.0, false},
                  {1, 3, 13712.0, 1980.0, false}};
  row.time = time;
  row.prepare_ns = 81250.0;
  row.bytes = row.problem.logical_bytes();
  row.bytes_per_s = static_cast<double>(row.bytes) / 13696e-9;
  row.roof_share = 0.81;
  row.roof_share_ci95 = Bounds{0.805, 0.8125};
  row.speedup = 2.0 / 3.0;
  row.speedup_ci95 = Bounds{0.65, 0.68};
  return row;
}

ResultRecord row_without_time(const RunInfo& run, const std::string& variant, Status status,
                              const std::string& reason) {
  ResultRecord row;
  row.problem = {8192, 32, 8, 128, Dtype::fp16, 0.1f};
  row.variant = variant;
  row.role = Role::reference;
  row.id = result_id(variant, row.problem, row.tuning, run.cache, run.timer);
  row.status = status;
  row.reason = reason;
  row.bytes = row.problem.logical_bytes();
  return row;
}

}  // namespace

ResultFile example_result() {
  ResultFile file;
  file.run = example_run();
  file.results.push_back(measured_row(file.run));
  file.results.push_back(
      row_without_time(file.run, "cublas_gemv", Status::unsupported, "needs cuBLAS 12 or later, has none"));
  ResultRecord wrong = row_without_time(file.run, "flash_decode_cp_async", Status::incorrect,
                                        "the output holds 3 NaN, \"o[0, 1]\" first");
  wrong.role = Role::candidate;
  wrong.source = "rule:seed";
  const double infinity = std::numeric_limits<double>::infinity();
  wrong.accuracy = Accuracy{infinity, infinity, std::nullopt, "cuda_oracle"};
  file.results.push_back(wrong);
  return file;
}

std::string golden(const std::string& name, const std::string& actual) {
  const std::string path = std::string(FDBENCH_TEST_DATA) + "/io/" + name;
  if (std::getenv("FDBENCH_UPDATE_GOLDENS")) io::write_atomically(path, actual);
  return io::read_file(path);
}

}  // namespace fdbench::io_test
