#include "passes/precision_rules.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/nearest_name.h"
#include "tensor/panel_layout.h"

namespace hone {
namespace {

struct NamedActivations {
  std::string_view name;
  Activations value;
};
constexpr NamedActivations kActivations[] = {{"f32", Activations::F32},
                                             {"bf16", Activations::Bf16},
                                             {"q8a", Activations::Q8a},
                                             {"q8a2", Activations::Q8aTwoTerms}};
constexpr std::string_view kKeys[] = {"activations", "kv", "residence"};

Error rule_error(const std::string& path, int line, std::string message, std::string expected,
                 std::string_view actual) {
  return Error{ErrorCode::BadInput,
               Fault::User,
               fmt::format("{}, line {}", path, line),
               std::move(message),
               std::move(expected),
               std::string(actual.substr(0, 80)),
               "PATTERN key=value .., as in docs/optimisation.md"};
}

// The words of a line, up to a #.
std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kSpaces = " \t\r";
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(kSpaces); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kSpaces, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kSpaces, end);
  }
  return words;
}

Status read_activations(std::string_view value, const std::string& path, PrecisionRule& rule) {
  if (rule.activations)
    return rule_error(path, rule.line, "a key is given twice", "one value", "activations");
  for (const NamedActivations& named : kActivations) {
    if (value == named.name) rule.activations = named.value;
  }
  if (rule.activations) return {};
  return rule_error(path, rule.line, "no such type of activations", "f32, bf16, q8a or q8a2", value);
}

Status read_kv(std::string_view value, const std::string& path, PrecisionRule& rule) {
  if (rule.kv) return rule_error(path, rule.line, "a key is given twice", "one value", "kv");
  if (value == "f32" || value == "f16" || value == "bf16" || value == "q8_0") {
    rule.kv = dtype_from_name(value);
    return {};
  }
  return rule_error(path, rule.line, "no such cache type", "f32, f16, bf16 or q8_0", value);
}

Status read_residence(std::string_view value, const std::string& path, PrecisionRule& rule) {
  if (rule.mapped) return rule_error(path, rule.line, "a key is given twice", "one value", "residence");
  if (value != "packed" && value != "mapped")
    return rule_error(path, rule.line, "no such residence of weights", "packed or mapped", value);
  rule.mapped = value == "mapped";
  return {};
}

Result<PrecisionRule> read_rule(const std::vector<std::string_view>& words, const std::string& path,
                                int line) {
  PrecisionRule rule;
  rule.line = line;
  rule.pattern = words[0];
  if (rule.pattern.find('=') != std::string::npos)
    return rule_error(path, line, "a rule begins with the pattern of its modules", "PATTERN key=value ..",
                      words[0]);
  if (words.size() == 1)
    return rule_error(path, line, "the rule says nothing of its modules", "key=value behind the pattern",
                      words[0]);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string_view key = words[i].substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : words[i].substr(equals + 1);
    if (key == "activations") {
      HONE_TRY(read_activations(value, path, rule));
    } else if (key == "kv") {
      HONE_TRY(read_kv(value, path, rule));
    } else if (key == "residence") {
      HONE_TRY(read_residence(value, path, rule));
    } else {
      Error error = rule_error(path, line, "no such key", "activations, kv or residence", words[i]);
      if (const std::string_view near = nearest_name(key, kKeys); !near.empty())
        error.next_step = fmt::format("did you mean '{}'?", near);
      return error;
    }
    rule.text += fmt::format(" {}", words[i]);
  }
  rule.text = rule.pattern + rule.text;
  return rule;
}

// * and ?, in linear time: of several stars only the last needs to be tried again.
bool glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// What a rule may speak of: the name of a weight or state, and the module that uses it.
struct Subject {
  std::string_view module;
  std::string_view name;
};
struct Subjects {
  std::vector<Subject> products;       // by weights that an int8 kernel reads
  std::vector<Subject> bf16_products;  // by weights of bf16, not of experts
  std::vector<Subject> states;
  std::vector<Subject> weights;  // all that are matrices
};

Subjects subjects_of(const Graph& graph) {
  std::map<ValueId, const GraphInput*> inputs;
  for (const GraphInput& input : graph.inputs) inputs.emplace(input.value, &input);
  Subjects out;
  for (const Node& node : graph.nodes) {
    for (const ValueId value : node.inputs) {
      const auto weight = inputs.find(value);
      if (weight != inputs.end() && weight->second->kind == InputKind::Weight &&
          graph.type(value).shape.size() >= 2)
        out.weights.push_back({node.module, weight->second->name});
    }
    const bool product = node.op == "matmul" || node.op == "expert_matmul";
    const bool state = node.op == "state_append";
    if (!product && !state) continue;
    const auto found = inputs.find(node.inputs[product ? 1 : 0]);
    if (found == inputs.end()) continue;
    const GraphInput& input = *found->second;
    if (state && input.kind == InputKind::State) out.states.push_back({node.module, input.name});
    if (product && input.kind == InputKind::Weight && panel_has_dot_numbers(graph.type(input.value).dtype))
      out.products.push_back({node.module, input.name});
    if (node.op == "matmul" && input.kind == InputKind::Weight &&
        graph.type(input.value).dtype == DType::BF16)
      out.bf16_products.push_back({node.module, input.name});
  }
  return out;
}

template <class Value>
bool set_all(std::string_view pattern, const std::vector<Subject>& subjects, const Value& value,
             std::map<std::string, Value, std::less<>>& target) {
  bool any = false;
  for (const Subject& subject : subjects) {
    if (!matches_module(pattern, subject.module)) continue;
    target[std::string(subject.name)] = value;
    any = true;
  }
  return any;
}

Error matches_nothing(const PrecisionRules& rules, const PrecisionRule& rule, std::string_view key,
                      std::string_view what, const std::vector<Subject>& subjects) {
  Error error = rule_error(rules.path, rule.line, fmt::format("the rule's {} finds nothing to hold for", key),
                           fmt::format("a pattern that matches a module with {}", what), rule.pattern);
  error.next_step = subjects.empty()
                        ? fmt::format("leave {} out: the model has no {}", key, what)
                        : fmt::format("one such module is {}; hone explain MODEL --layer 0 shows the names",
                                      subjects.front().module);
  return error;
}

// f32 holds for weights of either kind.
Status set_activations(const PrecisionRules& rules, const PrecisionRule& rule, const Subjects& subjects,
                       PrecisionPolicy& policy) {
  const bool bf16 = *rule.activations == Activations::Bf16;
  bool any = false;
  if (!bf16) any = set_all(rule.pattern, subjects.products, *rule.activations, policy.products);
  if (bf16 || *rule.activations == Activations::F32)
    any = set_all(rule.pattern, subjects.bf16_products, *rule.activations, policy.products) || any;
  if (any) return {};
  return bf16 ? matches_nothing(rules, rule, "activations", "a product with weights of bf16",
                                subjects.bf16_products)
              : matches_nothing(rules, rule, "activations", "a product that an int8 kernel reads",
                                subjects.products);
}

}  // namespace

bool matches_module(std::string_view pattern, std::string_view module) {
  for (std::size_t end = module.find('.');; end = module.find('.', end + 1)) {
    if (glob(pattern, module.substr(0, end))) return true;
    if (end == std::string_view::npos) return false;
  }
}

Result<PrecisionRules> parse_precision_rules(std::string_view text, const std::string& path) {
  PrecisionRules out{path, {}};
  const auto whole = [&](std::string message, std::string expected, std::string actual) {
    return Error{ErrorCode::BadInput,
                 Fault::User,
                 path,
                 std::move(message),
                 std::move(expected),
                 std::move(actual),
                 "PATTERN key=value .., as in docs/optimisation.md"};
  };
  if (text.size() > kMostPrecisionBytes)
    return whole("the file of rules is too long", fmt::format("at most {} bytes", kMostPrecisionBytes),
                 fmt::format("{} bytes", text.size()));
  int line = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    const std::string_view content = text.substr(0, text[end] == '\n' ? end : end + 1);
    text.remove_prefix(end + 1);
    ++line;
    const auto printable = [](char c) { return c == '\t' || c == '\r' || (c >= ' ' && c <= '~'); };
    if (!std::all_of(content.begin(), content.end(), printable))
      return rule_error(path, line, "the line is no plain text", "printable ASCII characters", "other bytes");
    const std::vector<std::string_view> words = words_of(content);
    if (words.empty()) continue;
    if (out.rules.size() == kMostPrecisionRules)
      return rule_error(path, line, "there are too many rules",
                        fmt::format("at most {}", kMostPrecisionRules), words[0]);
    out.rules.push_back(HONE_TRY(read_rule(words, path, line)));
  }
  if (out.rules.empty()) return whole("the file has no rules", "a rule a line", "none");
  return out;
}

Status apply_precision_rules(const PrecisionRules& rules, const Graph& graph, PrecisionPolicy& policy) {
  const Subjects subjects = subjects_of(graph);
  for (const PrecisionRule& rule : rules.rules) {
    if (rule.activations) HONE_TRY(set_activations(rules, rule, subjects, policy));
    if (rule.mapped) {
      std::map<std::string, bool, std::less<>> chosen;
      if (!set_all(rule.pattern, subjects.weights, *rule.mapped, chosen))
        return matches_nothing(rules, rule, "residence", "a weight matrix", subjects.weights);
      for (const auto& [name, mapped] : chosen) {
        policy.mapped.erase(name);
        if (mapped) policy.mapped.insert(name);
      }
    }
    if (rule.kv && !set_all(rule.pattern, subjects.states, *rule.kv, policy.states))
      return matches_nothing(rules, rule, "kv", "a KV cache", subjects.states);
  }
  return {};
}

}  // namespace hone
