#include "rules/split_rule_table.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "rules/field_split_rules.h"

namespace fdbench::rules {
namespace {

template <Split (*Rule)(const SplitInput&)>
Split plain(const SplitInput& input, std::int64_t) {
  return Rule(input);
}

constexpr std::string_view kSeedSource = "get_chunk_size of the article this project grew from";

constexpr SplitRule kRules[] = {
    {"fixed", "N equal chunks a head, whatever the machine", "this project", "chunks a head", std::nullopt,
     fixed_rule},
    {"seed", "a chunk of 256, 512, 1024 or 2048 tokens by heads x seq a multiprocessor", kSeedSource, "",
     std::nullopt, plain<seed_rule>},
    {"seed_fine", "the same with chunks from 64 tokens", kSeedSource, "", std::nullopt,
     plain<seed_fine_rule>},
    {"sm_multiple", "as many equal chunks as keep the grid within N CTAs a multiprocessor", "this project",
     "CTAs a multiprocessor", 1, sm_multiple_rule},
    {"fa2", "fewest splits within 85 % of the best wave efficiency, two CTAs a multiprocessor",
     "FlashAttention, csrc/flash_attn/flash_api.cpp", "", std::nullopt, plain<fa2_rule>},
    {"fa3", "fewest splits within 85 % of the best wave efficiency, over packed heads",
     "FlashAttention, hopper/heuristics.h and hopper/flash_api.cpp", "", std::nullopt, plain<fa3_rule>},
    {"flashinfer", "as many chunks of at least 256 tokens as its kernel's occupancy has room for",
     "FlashInfer, include/flashinfer/attention/decode.cuh", "", std::nullopt, plain<flashinfer_rule>},
    {"llama_cpp", "splits of the best wave efficiency in whole percent, vector kernel",
     "llama.cpp, ggml/src/ggml-cuda/fattn-common.cuh", "", std::nullopt, plain<llama_cpp_rule>},
    {"trtllm", "at most sqrt(8 x blocks of 128), thinned to eight CTAs a multiprocessor",
     "TensorRT-LLM, decoderMaskedMultiheadAttention/decoderXQAImplCommon.h", "", std::nullopt,
     plain<trtllm_rule>},
    {"vllm_v1", "one pass, no split", "vLLM, attention/ops/paged_attn.py", "", std::nullopt,
     plain<vllm_v1_rule>},
    {"vllm_v2", "partitions of 512 tokens, or one pass where sequences are short",
     "vLLM, attention/ops/paged_attn.py", "", std::nullopt, plain<vllm_v2_rule>},
    {"xqa", "one CTA a multiprocessor, chunks of at least 256 tokens", "FlashInfer, csrc/xqa/mha.cu", "",
     std::nullopt, plain<xqa_rule>},
};

std::string known_names() {
  std::string names;
  for (const SplitRule& rule : kRules) {
    names += (names.empty() ? "" : ", ") + std::string(rule.name) + (rule.argument.empty() ? "" : ":N");
  }
  return names;
}

NamedSplitRule refusal(std::string why) {
  return {.rule = nullptr, .argument = 0, .error = std::move(why)};
}

}  // namespace

std::span<const SplitRule> split_rules() {
  return kRules;
}

std::string NamedSplitRule::name() const {
  if (rule == nullptr) return {};
  return std::string(rule->name) + (rule->argument.empty() ? "" : ":" + std::to_string(argument));
}

Split NamedSplitRule::operator()(const SplitInput& input) const {
  if (rule == nullptr) return {.error = error.empty() ? "no split rule was named" : error};
  return rule->answer(input, argument);
}

NamedSplitRule find_split_rule(std::string_view spec) {
  const std::size_t colon = spec.find(':');
  const std::string name(spec.substr(0, colon));
  const auto found =
      std::find_if(std::begin(kRules), std::end(kRules), [&](const SplitRule& r) { return r.name == name; });
  if (found == std::end(kRules))
    return refusal("'" + name + "' is no split rule; there are " + known_names());

  if (colon == std::string_view::npos) {
    if (found->argument.empty()) return {.rule = &*found};
    if (found->default_argument) return {.rule = &*found, .argument = *found->default_argument};
    return refusal(name + " needs a number: " + name + ":N, N = " + std::string(found->argument));
  }
  const std::string_view digits = spec.substr(colon + 1);
  if (found->argument.empty())
    return refusal(name + " takes no argument, and was given '" + std::string(digits) + "'");

  std::int64_t argument = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), argument);
  const bool whole = status == std::errc{} && end == digits.data() + digits.size();
  if (!whole || argument < 1 || argument > std::int64_t{1} << 40) {
    return refusal(name + ":N takes a whole number of 1 to 2^40 (" + std::string(found->argument) +
                   "), not '" + std::string(digits) + "'");
  }
  return {.rule = &*found, .argument = argument};
}

}  // namespace fdbench::rules
