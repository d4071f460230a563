// Which exit code rows ask for: the first that applies, in the order of the design.
#include <gtest/gtest.h>

#include <vector>

#include "cli/measure_command.h"

namespace fdbench::cli {
namespace {

ResultRecord row(Role role, Status status, const char* stop = "converged") {
  ResultRecord record;
  record.role = role;
  record.status = status;
  if (status == Status::ok && *stop != '\0') {
    record.time.emplace();
    record.time->stop = stop;
  }
  return record;
}
ResultRecord candidate(Status status, const char* stop = "converged") {
  return row(Role::candidate, status, stop);
}

TEST(ExitForRows, Good) {
  EXPECT_EQ(exit_for_rows({candidate(Status::ok)}, true), Exit::good);
  EXPECT_EQ(exit_for_rows({candidate(Status::ok, "fixed_rounds")}, true), Exit::good);
  EXPECT_EQ(exit_for_rows({candidate(Status::ok, "")}, true), Exit::good);  // checked, not timed
  EXPECT_EQ(exit_for_rows({candidate(Status::unsupported), candidate(Status::ok)}, true), Exit::good);
}

TEST(ExitForRows, TooNoisyOnlyIfAskedFor) {
  for (const char* stop : {"max_time", "max_rounds", "interrupted"}) {
    EXPECT_EQ(exit_for_rows({candidate(Status::ok), candidate(Status::ok, stop)}, true), Exit::too_noisy)
        << stop;
    EXPECT_EQ(exit_for_rows({candidate(Status::ok), candidate(Status::ok, stop)}, false), Exit::good) << stop;
  }
}

TEST(ExitForRows, Failed) {
  EXPECT_EQ(exit_for_rows({candidate(Status::ok), candidate(Status::failed)}, false), Exit::failed);
  EXPECT_EQ(exit_for_rows({candidate(Status::ok), candidate(Status::timeout)}, false), Exit::failed);
  EXPECT_EQ(exit_for_rows({row(Role::reference, Status::failed), candidate(Status::ok)}, false),
            Exit::failed);
}

TEST(ExitForRows, NothingMeasured) {
  EXPECT_EQ(exit_for_rows({}, false), Exit::failed);
  EXPECT_EQ(exit_for_rows({candidate(Status::unsupported)}, false), Exit::failed);
  EXPECT_EQ(exit_for_rows({row(Role::roof, Status::ok), candidate(Status::unsupported)}, false),
            Exit::failed);
  // Where no candidate was asked for, the others are what was.
  EXPECT_EQ(exit_for_rows({row(Role::roof, Status::ok), row(Role::reference, Status::ok)}, false),
            Exit::good);
  EXPECT_EQ(exit_for_rows({row(Role::reference, Status::unsupported)}, false), Exit::failed);
}

TEST(ExitForRows, TheFirstThatApplies) {
  const auto incorrect = candidate(Status::incorrect), failed = candidate(Status::failed),
             noisy = candidate(Status::ok, "max_time");
  EXPECT_EQ(exit_for_rows({failed, noisy, incorrect}, true), Exit::wrong_result);
  EXPECT_EQ(exit_for_rows({failed, noisy}, true), Exit::too_noisy);
  EXPECT_EQ(exit_for_rows({failed, noisy}, false), Exit::failed);
  EXPECT_EQ(exit_for_rows({row(Role::reference, Status::incorrect), candidate(Status::ok)}, false),
            Exit::wrong_result);
}

}  // namespace
}  // namespace fdbench::cli
