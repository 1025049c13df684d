// A plugin whose passes are wrong, each in its own way. Built with fast-math, which turns on flush-to-zero in
// whatever process loads it.
#include <cstdlib>
#include <functional>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include "hone/hone_pass.h"

namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const char* graph) {
  Lines lines;
  std::istringstream text(graph);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

int give(const Lines& lines, hone_answer answer, void* hone) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  answer(hone, out.c_str());
  return 0;
}

// The line that writes `value`.
const std::string& definition(const Lines& lines, const std::string& value) {
  static const std::string none;
  for (const std::string& line : lines) {
    if (line.rfind("  " + value + ": ", 0) == 0) return line;
  }
  return none;
}

// rsqrt(mean + eps) becomes rsqrt(mean).
int forget_eps(const char* graph, hone_answer answer, void* hone) {
  const Lines lines = lines_of(graph);
  Lines out = lines;
  for (std::string& line : out) {
    std::smatch root;
    std::smatch sum;
    if (!std::regex_search(line, root, std::regex(R"(= rsqrt\((%\w+)\))"))) continue;
    const std::string of = definition(lines, root[1]);
    if (!std::regex_search(of, sum, std::regex(R"(= add\((%\w+), %\w+\))"))) continue;
    line = std::regex_replace(line, std::regex(R"(rsqrt\(%\w+\))"), "rsqrt(" + sum[1].str() + ")");
  }
  return give(out, answer, hone);
}

// The two weights of a gated feed-forward, which have one shape, change places.
int swap_inputs(const char* graph, hone_answer answer, void* hone) {
  Lines lines = lines_of(graph);
  for (std::string& line : lines) {
    line = std::regex_replace(line, std::regex(R"(swiglu_mlp\((%\w+), (%\w+), (%\w+)\))"),
                              "swiglu_mlp($1, $3, $2)");
  }
  return give(lines, answer, hone);
}

// The second reader of the first norm reads what the norm reads.
int drop_second_user(const char* graph, hone_answer answer, void* hone) {
  Lines lines = lines_of(graph);
  std::smatch norm;
  int readers = 0;
  for (std::string& line : lines) {
    if (norm.empty()) {
      static std::string kept;
      kept = line;
      std::regex_search(kept, norm, std::regex(R"(^  (%\w+): \S+ = rms_norm\((%\w+), )"));
      continue;
    }
    const std::string read = "matmul(" + norm[1].str() + ", ";
    const std::size_t at = line.find(read);
    if (at == std::string::npos || ++readers != 2) continue;
    line.replace(at, read.size(), "matmul(" + norm[2].str() + ", ");
  }
  return give(lines, answer, hone);
}

// Puts lines behind the last product of each norm that make its value (of the type given) of `VALUE_right`.
Lines behind_norms(const char* graph,
                   const std::function<std::string(std::string value, std::string type)>& tail) {
  const std::regex pattern(R"(^  (%\w+): (\S+) = mul\((%\w+), (%\w+)\)(.*))");
  const Lines lines = lines_of(graph);
  Lines out;
  for (const std::string& line : lines) {
    std::smatch product;
    const bool multiplies = std::regex_search(line, product, pattern);
    const std::string normalised = multiplies ? definition(lines, product[3]) : "";
    std::smatch parts;
    const bool divides = std::regex_search(normalised, parts, std::regex(R"(= mul\(%\w+, (%\w+)\))"));
    if (!divides || definition(lines, parts[1]).find("= rsqrt(") == std::string::npos) {
      out.push_back(line);
      continue;
    }
    const std::string value = product[1];
    const std::string type = product[2];
    out.push_back("  " + value + "_right: " + type + " = mul(" + product[3].str() + ", " + product[4].str() +
                  ")");
    out.push_back(tail(value, type));
  }
  return out;
}

// Each norm times 1 + 3 * 2^-23. Two right forms of its last product differ by sqrt(2/3) * 2^-24 as a rule,
// one rounding each; this is 7.3 times as much, the most below 8 that a factor of type f32 gives.
int eightfold_error(const char* graph, hone_answer answer, void* hone) {
  const auto tail = [](const std::string& value, const std::string& type) {
    return "  " + value +
           "_off: f32[] = constant() {dtype = \"f32\", shape = dims[], values = reals[1.0000003576278687]}\n "
           " " +
           value + ": " + type + " = mul(" + value + "_right, " + value + "_off)";
  };
  return give(behind_norms(graph, tail), answer, hone);
}

// Each norm goes through bf16.
int narrow(const char* graph, hone_answer answer, void* hone) {
  const auto tail = [](const std::string& value, const std::string& type) {
    return "  " + value + "_narrow: b" +
           std::regex_replace(type, std::regex("32"), "16", std::regex_constants::format_first_only) +
           " = cast(" + value + "_right) {to = \"bf16\"}\n  " + value + ": " + type + " = cast(" + value +
           "_narrow) {to = \"f32\"}";
  };
  return give(behind_norms(graph, tail), answer, hone);
}

// An op that does not exist.
int break_ir(const char* graph, hone_answer answer, void* hone) {
  answer(hone, std::regex_replace(graph, std::regex(R"(= mul\()"), "= mull(").c_str());
  return 0;
}

int no_text(const char*, hone_answer answer, void* hone) {
  answer(hone, "done!");
  return 0;
}

int rename_output(const char* graph, hone_answer answer, void* hone) {
  answer(hone, std::regex_replace(graph, std::regex("output \""), "output \"my_").c_str());
  return 0;
}

int refuse(const char*, hone_answer answer, void* hone) {
  answer(hone, "I like no graph");
  return 7;
}

int silent(const char*, hone_answer, void*) {
  return 0;
}

int crash(const char* graph, hone_answer, void*) {
  volatile char* const nowhere = reinterpret_cast<char*>(graph[0] == 'g' ? 8 : 16);
  *nowhere = 1;
  return 0;
}

int give_up(const char*, hone_answer, void*) {
  std::abort();
}

int leave(const char*, hone_answer, void*) {
  _exit(3);
}

int throw_up(const char*, hone_answer, void*) {
  throw std::runtime_error("seven");
}

int hang(const char*, hone_answer, void*) {
  for (;;) sleep(1);
}

// Closes everything, the pipe to hone among it, and goes on.
int close_and_hang(const char* graph, hone_answer answer, void* hone) {
  for (int fd = 3; fd < 256; ++fd) close(fd);
  return hang(graph, answer, hone);
}

constexpr hone_pass kPasses[] = {
    {HONE_PASS_ABI, "forget-eps", "reorders", "8 * 2^-24", "before fuse-norm", 1, "a test", forget_eps},
    {HONE_PASS_ABI, "swap-inputs", "same bits", nullptr, "after fuse-mlp", 1, "a test", swap_inputs},
    {HONE_PASS_ABI, "drop-second-user", "same bits", nullptr, "after fuse-norm", 1, "a test",
     drop_second_user},
    {HONE_PASS_ABI, "eightfold-error", "reorders", "8 * 2^-24", "before fuse-norm", 1, "a test",
     eightfold_error},
    {HONE_PASS_ABI, "narrow-in-secret", "fewer roundings", "2^-24", "before fuse-norm", 1, "a test", narrow},
    {HONE_PASS_ABI, "narrow-openly", "rounds to type", "2^-8", "before fuse-norm", 1, "a test", narrow},
    {HONE_PASS_ABI, "break-ir", "same bits", nullptr, "after cse", 1, "a test", break_ir},
    {HONE_PASS_ABI, "no-text", "same bits", nullptr, "after cse", 1, "a test", no_text},
    {HONE_PASS_ABI, "rename-output", "same bits", nullptr, "after cse", 1, "a test", rename_output},
    {HONE_PASS_ABI, "refuse", "same bits", nullptr, "after cse", 1, "a test", refuse},
    {HONE_PASS_ABI, "silent", "same bits", nullptr, "after cse", 1, "a test", silent},
    {HONE_PASS_ABI, "crash", "same bits", nullptr, "after cse", 1, "a test", crash},
    {HONE_PASS_ABI, "abort", "same bits", nullptr, "after cse", 1, "a test", give_up},
    {HONE_PASS_ABI, "leave", "same bits", nullptr, "after cse", 1, "a test", leave},
    {HONE_PASS_ABI, "throw", "same bits", nullptr, "after cse", 1, "a test", throw_up},
    {HONE_PASS_ABI, "hang", "same bits", nullptr, "after cse", 1, "a test", hang},
    {HONE_PASS_ABI, "close-and-hang", "same bits", nullptr, "after cse", 1, "a test", close_and_hang},
};

}  // namespace

const hone_pass* hone_plugin_pass(int index) {
  return index < static_cast<int>(std::size(kPasses)) ? &kPasses[index] : nullptr;
}
