#include "plan/strip_builder.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <optional>

#include "graph/rewrite.h"

namespace hone {
namespace {

struct NamedOp {
  std::string_view name;
  StripOp op;
};
constexpr std::array kOps{
    NamedOp{"cast", StripOp::Cast},   NamedOp{"neg", StripOp::Neg},
    NamedOp{"abs", StripOp::Abs},     NamedOp{"exp", StripOp::Exp},
    NamedOp{"log", StripOp::Log},     NamedOp{"sqrt", StripOp::Sqrt},
    NamedOp{"rsqrt", StripOp::Rsqrt}, NamedOp{"sin", StripOp::Sin},
    NamedOp{"cos", StripOp::Cos},     NamedOp{"tanh", StripOp::Tanh},
    NamedOp{"not", StripOp::Not},     NamedOp{"add", StripOp::Add},
    NamedOp{"sub", StripOp::Sub},     NamedOp{"mul", StripOp::Mul},
    NamedOp{"div", StripOp::Div},     NamedOp{"max", StripOp::Max},
    NamedOp{"min", StripOp::Min},     NamedOp{"pow", StripOp::Pow},
    NamedOp{"less", StripOp::Less},   NamedOp{"less_equal", StripOp::LessEqual},
    NamedOp{"equal", StripOp::Equal}, NamedOp{"and", StripOp::And},
    NamedOp{"or", StripOp::Or},       NamedOp{"select", StripOp::Select},
};

// f16 and bf16 are computed in f32 registers; stores round.
DType register_type(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 ? DType::F32 : dtype;
}

class Builder {
 public:
  void load(ValueId value, int operand, DType dtype) {
    emit(value, {.op = StripOp::Load, .dtype = register_type(dtype), .a = operand});
  }
  void constant(ValueId value, double number, DType dtype) {
    emit(value, {.op = StripOp::Constant, .dtype = register_type(dtype), .constant = number});
  }
  Status compute(const Graph& graph, const Node& node) {
    for (const NamedOp& named : kOps) {
      if (named.name != node.op) continue;
      StripInstruction instruction{.op = named.op, .dtype = register_type(graph.type(node.outputs[0]).dtype)};
      int* const operands[] = {&instruction.a, &instruction.b, &instruction.c};
      for (std::size_t i = 0; i < node.inputs.size(); ++i) *operands[i] = registers_.at(node.inputs[i]);
      emit(node.outputs[0], instruction);
      return {};
    }
    return internal_error(fmt::format("op {} of {}", node.op, node.module), "this op has no strip kernel");
  }
  void store(ValueId value, int output, DType dtype) {
    program_.instructions.push_back(
        {.op = StripOp::Store, .dtype = dtype, .a = registers_.at(value), .b = output});
  }
  StripProgram finish() { return compact(std::move(program_)); }

 private:
  void emit(ValueId value, StripInstruction instruction) {
    instruction.result = program_.register_count++;
    registers_[value] = instruction.result;
    program_.instructions.push_back(instruction);
  }

  // Gives dead registers out again: fewer strips in L1.
  static StripProgram compact(StripProgram program) {
    std::vector<int> last_use(static_cast<std::size_t>(program.register_count), -1);
    const auto reads = [](StripInstruction& instruction, auto&& visit) {
      if (instruction.op == StripOp::Load || instruction.op == StripOp::Constant) return;
      visit(instruction.a);
      if (instruction.op != StripOp::Store) {
        if (instruction.b >= 0) visit(instruction.b);
        if (instruction.c >= 0) visit(instruction.c);
      }
    };
    for (std::size_t i = 0; i < program.instructions.size(); ++i) {
      reads(program.instructions[i],
            [&](int& r) { last_use[static_cast<std::size_t>(r)] = static_cast<int>(i); });
    }
    std::vector<int> renamed(static_cast<std::size_t>(program.register_count), -1);
    std::vector<int> free;
    int count = 0;
    for (std::size_t i = 0; i < program.instructions.size(); ++i) {
      StripInstruction& instruction = program.instructions[i];
      std::vector<int> dead;
      reads(instruction, [&](int& r) {
        const auto old = static_cast<std::size_t>(r);
        r = renamed[old];
        if (last_use[old] == static_cast<int>(i) && std::find(dead.begin(), dead.end(), r) == dead.end())
          dead.push_back(r);
      });
      if (instruction.op != StripOp::Store) {
        // A result never takes the register of an operand that dies here: kernels may not assume restrict
        // otherwise.
        int taken = count;
        if (free.empty()) {
          ++count;
        } else {
          taken = free.back();
          free.pop_back();
        }
        renamed[static_cast<std::size_t>(instruction.result)] = taken;
        instruction.result = taken;
      }
      free.insert(free.end(), dead.begin(), dead.end());
    }
    program.register_count = count;
    return program;
  }

  StripProgram program_;
  std::map<ValueId, int> registers_;
};

}  // namespace

Result<StripProgram> build_strip_program(const Graph& graph, const UseMap& uses, const Node& node) {
  Builder builder;
  if (node.body != nullptr) {
    const Graph& body = *node.body;
    for (std::size_t i = 0; i < body.inputs.size(); ++i) {
      builder.load(body.inputs[i].value, static_cast<int>(i), body.type(body.inputs[i].value).dtype);
    }
    const UseMap inside(body);
    for (const Node& inner : body.nodes) {
      if (const double* number = scalar_constant(body, inside, inner.outputs[0])) {
        builder.constant(inner.outputs[0], *number, body.type(inner.outputs[0]).dtype);
      } else {
        HONE_TRY(builder.compute(body, inner));
      }
    }
    for (std::size_t i = 0; i < body.outputs.size(); ++i) {
      builder.store(body.outputs[i].value, static_cast<int>(i), body.type(body.outputs[i].value).dtype);
    }
    return builder.finish();
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const DType dtype = graph.type(node.inputs[i]).dtype;
    if (const double* number = scalar_constant(graph, uses, node.inputs[i])) {
      builder.constant(node.inputs[i], *number, dtype);
    } else {
      builder.load(node.inputs[i], static_cast<int>(i), dtype);
    }
  }
  HONE_TRY(builder.compute(graph, node));
  builder.store(node.outputs[0], 0, graph.type(node.outputs[0]).dtype);
  return builder.finish();
}

}  // namespace hone
