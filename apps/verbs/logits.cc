// hone logits: the logits of given tokens as a safetensors file.
#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <sstream>

#include "apps/check_ids.h"
#include "apps/model_notes.h"
#include "apps/plural.h"
#include "apps/verb.h"
#include "engine/session.h"
#include "file/safetensors.h"

namespace hone {
namespace {

struct LogitsFlags : CommonFlags {
  std::string ids;
  std::string out;
  std::string batch_with;  // "4,5;6,7": other sequences that run beside this one
  bool last = false;
  bool hidden = false;
};

// One row-major f32 matrix that grows by rows.
struct Matrix {
  std::string name;
  std::int64_t columns = 0;
  std::vector<float> values;

  SafetensorsTensor tensor() const {
    const auto rows = static_cast<std::int64_t>(values.size()) / columns;
    return {name, DType::F32, {rows, columns}, std::as_bytes(std::span(values))};
  }
};

Result<std::vector<std::vector<std::int32_t>>> sequences(const LogitsFlags& flags) {
  std::vector<std::vector<std::int32_t>> all{HONE_TRY(parse_ids("--ids", flags.ids))};
  std::istringstream parts(flags.batch_with);
  std::string part;
  while (std::getline(parts, part, ';')) all.push_back(HONE_TRY(parse_ids("--batch-with", part)));
  return all;
}

// Names of the outputs to collect beside the logits, and their row length.
std::vector<Matrix> hidden_matrices(const ModelConfig& config) {
  std::vector<Matrix> out{{"hidden_embed", config.dim, {}}};
  for (std::int64_t i = 0; i < config.layers; ++i)
    out.push_back({fmt::format("hidden_{}", i), config.dim, {}});
  out.push_back({"hidden_norm", config.dim, {}});
  return out;
}

class Collector {
 public:
  Collector(Session& session, const LogitsFlags& flags)
      : session_(session), last_only_(flags.last), logits_{"logits", session.model().config.vocabulary, {}} {
    if (flags.hidden) hidden_ = hidden_matrices(session.model().config);
  }

  // One step of all sequences: those tokens of each that stand at [at, at + chunk).
  Status step(const std::vector<std::vector<std::int32_t>>& all, std::int64_t at, std::int64_t chunk) {
    std::vector<std::vector<std::int32_t>> parts;
    std::vector<std::int64_t> past;
    std::vector<std::int64_t> lengths;
    for (const std::vector<std::int32_t>& ids : all) {
      const auto size = static_cast<std::int64_t>(ids.size());
      const std::int64_t begin = std::min(at, size);
      const std::int64_t end = std::min(at + chunk, size);
      parts.emplace_back(ids.begin() + begin, ids.begin() + end);
      past.push_back(begin);
      lengths.push_back(size);
    }
    const auto count = static_cast<std::int64_t>(parts[0].size());
    const bool final = at + count == static_cast<std::int64_t>(all[0].size());
    std::vector<Session::Row> rows;
    for (std::int64_t i = 0; i < count; ++i) {
      if (!last_only_ || (final && i + 1 == count)) rows.push_back({0, i});
    }
    const bool wanted = !rows.empty();
    if (!wanted) rows.push_back({0, count - 1});
    const std::span<const float> logits = HONE_TRY(session_.step(parts, past, rows, lengths));
    if (wanted) logits_.values.insert(logits_.values.end(), logits.begin(), logits.end());
    for (Matrix& matrix : hidden_) {
      // hidden_norm has the rows of the logits; the others all tokens, of which sequence 0 comes first.
      if (matrix.name == "hidden_norm" && !wanted) continue;
      const std::span<const float> values = HONE_TRY(session_.output(matrix.name));
      const auto take = static_cast<std::size_t>(
          (matrix.name == "hidden_norm" ? static_cast<std::int64_t>(rows.size()) : count) * matrix.columns);
      matrix.values.insert(matrix.values.end(), values.begin(),
                           values.begin() + static_cast<std::ptrdiff_t>(take));
    }
    return {};
  }

  Status write(const std::string& path) const {
    std::vector<SafetensorsTensor> tensors{logits_.tensor()};
    for (const Matrix& matrix : hidden_) tensors.push_back(matrix.tensor());
    return write_safetensors(path, tensors);
  }

 private:
  Session& session_;
  bool last_only_;
  Matrix logits_;
  std::vector<Matrix> hidden_;
};

Status run(const LogitsFlags& flags) {
  const std::vector<std::vector<std::int32_t>> all = HONE_TRY(sequences(flags));
  EngineOptions options = HONE_TRY(flags.engine_options());
  options.batch = static_cast<std::int64_t>(all.size());
  options.all_logits = !flags.last;
  options.hidden_outputs = flags.hidden;
  const std::unique_ptr<Session> session = HONE_TRY(Session::prepare(flags.model, options));
  print_model_notes(session->model());
  for (const std::vector<std::int32_t>& ids : all) {
    HONE_TRY(check_vocabulary(*session, ids));
    HONE_TRY(check_length(*session, static_cast<std::int64_t>(ids.size())));
  }
  HONE_TRY(session->load());
  const auto begin = std::chrono::steady_clock::now();
  Collector collector(*session, flags);
  const std::int64_t chunk = session->model().plan.bound.find('T').value_or(1);
  const auto tokens = static_cast<std::int64_t>(all[0].size());
  for (std::int64_t at = 0; at < tokens; at += chunk) HONE_TRY(collector.step(all, at, chunk));
  HONE_TRY(collector.write(flags.out));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (flags.json) {
    print_json({{"tokens", tokens}, {"seconds", seconds}});
  } else {
    print_answer(fmt::format("{} in {:.3f} s, logits in {}\n", counted(tokens, "token"), seconds, flags.out));
  }
  return {};
}

}  // namespace

Verb add_logits(const CommandLine& line) {
  const Command verb = line.add_verb("logits", "logits of token ids, into a safetensors file");
  auto flags = std::make_shared<LogitsFlags>();
  flags->add_to(verb);
  verb.option("--ids", flags->ids, "token ids: 1,2,3").required();
  verb.option("--out", flags->out, "the file to write: logits f32 [T,V]").required();
  verb.flag("--last", flags->last, "only the last token's: [1,V]");
  verb.flag("--hidden", flags->hidden, "hidden_embed, hidden_i and hidden_norm [T,D] as well");
  verb.option("--batch-with", flags->batch_with, "other sequences to run beside it: \"4,5;6,7\"");
  return {verb, &flags->json, [flags] { return run(*flags); }};
}

}  // namespace hone
