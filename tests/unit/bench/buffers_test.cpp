// Guards that see a single byte, and inputs that end in NaN.
#include "bench/buffers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/half.h"
#include "core/input_recipe.h"
#include "counting_backend.h"

namespace fdbench::bench {
namespace {

std::uint8_t* bytes_of(const GuardedBuffer& buffer) {
  return static_cast<std::uint8_t*>(buffer.data());
}

TEST(GuardedBuffer, WholeUntilWrittenOver) {
  CountingBackend backend(small_fake());
  GuardedBuffer buffer(backend, 100);
  EXPECT_EQ(buffer.broken_guard(backend), "");
  backend.set_bytes(buffer.data(), 0x00, 100);
  EXPECT_EQ(buffer.broken_guard(backend), "");
}

TEST(GuardedBuffer, SeesOneByteOnEitherSide) {
  CountingBackend backend(small_fake());
  for (const std::int64_t at : {-1, -17, -4096}) {
    GuardedBuffer buffer(backend, 100);
    bytes_of(buffer)[at] ^= 1;
    EXPECT_EQ(buffer.broken_guard(backend), std::to_string(-at) + " bytes before its start");
  }
  for (const std::int64_t past : {0, 16, 4095}) {
    GuardedBuffer buffer(backend, 100);
    bytes_of(buffer)[100 + past] ^= 1;
    EXPECT_EQ(buffer.broken_guard(backend), std::to_string(past) + " bytes past its end");
  }
}

TEST(GuardedBuffer, NothingMayBeWrittenWhereThereAreNoBytes) {
  CountingBackend backend(small_fake());
  const GuardedBuffer buffer(backend, 0);
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(buffer.broken_guard(backend), "");
}

TEST(Buffer, OwnsItsMemory) {
  CountingBackend backend(small_fake());
  {
    Buffer first(backend, 100), second(backend, 50);
    EXPECT_EQ(backend.held(), 150);
    Buffer moved(std::move(first));
    EXPECT_EQ(first.data(), nullptr);
    EXPECT_EQ(backend.held(), 150);
    second = std::move(moved);
    EXPECT_EQ(second.bytes(), 100);
    const GuardedBuffer guarded(backend, 10);
    EXPECT_EQ(backend.held(), 150 + GuardedBuffer::footprint(10));
  }
  EXPECT_EQ(backend.held(), 0);
}

TEST(Inputs, AreTheRecipesAndEndInNan) {
  CountingBackend backend(small_fake());
  const Problem problem{5, 4, 2, 64, Dtype::bf16, {}};
  {
    const Inputs inputs(backend, problem, 7);
    EXPECT_EQ(backend.held(), Inputs::footprint(problem));
    const DecodeArgs args = inputs.args();
    EXPECT_EQ(args.seq, 5);
    EXPECT_EQ(args.k_seq_stride, 128);
    const auto element = [](const void* tensor, std::int64_t at) {
      return static_cast<const std::uint16_t*>(tensor)[at];
    };
    for (const auto& [tensor, memory, elements] : {std::tuple{Tensor::q, args.q, problem.q_elements()},
                                                   std::tuple{Tensor::k, args.k, problem.kv_elements()},
                                                   std::tuple{Tensor::v, args.v, problem.kv_elements()}}) {
      for (std::int64_t i = 0; i < elements; ++i) {
        const InputBlock block = input_block(7, tensor, static_cast<std::uint64_t>(i / 4));
        ASSERT_EQ(element(memory, i), float_to_bf16(block.value[i % 4]));
      }
    }
    for (std::int64_t i = 0; i < kPoisonRows * problem.kv_heads * problem.dim; ++i) {
      ASSERT_TRUE(std::isnan(bf16_to_float(element(args.k, problem.kv_elements() + i))));
      ASSERT_TRUE(std::isnan(bf16_to_float(element(args.v, problem.kv_elements() + i))));
    }
  }
  EXPECT_EQ(backend.held(), 0);
}

TEST(Inputs, OneSeedOneInput) {
  CountingBackend backend(small_fake());
  const Problem problem{8, 1, 1, 64, Dtype::fp16, {}};
  const Inputs a(backend, problem, 1), b(backend, problem, 1), c(backend, problem, 2);
  const auto k = [&](const Inputs& inputs) {
    std::vector<std::uint16_t> host(static_cast<std::size_t>(problem.kv_elements()));
    backend.download(host.data(), inputs.args().k, problem.kv_bytes());
    return host;
  };
  EXPECT_EQ(k(a), k(b));
  EXPECT_NE(k(a), k(c));
}

}  // namespace
}  // namespace fdbench::bench
