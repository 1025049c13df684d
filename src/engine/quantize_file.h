// A checkpoint written as GGUF with its matrices in another type: a GGUF file again, or a Hugging Face folder
// (model/gguf_form.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "file/checkpoint.h"
#include "model/gguf_form.h"
#include "tensor/dtype.h"

namespace hone {

struct QuantizeOptions {
  DType type = DType::Q8_0;
  // Keeps what the model is most sensitive to in wider_type(type): the output matrix (the token embedding
  // where it serves as one), and attn_v and ffn_down of the first and last eighth of the layers and of every
  // third between.
  bool mix = false;
  // Vectors and routers keep the type they have; else they become f32, as GGUF's converters write them. Set
  // for a source that is GGUF.
  bool keep_small_types = false;
};

struct QuantizedTensor {
  std::string name;
  std::string from;
  DType to = DType::F32;
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;
  double relative_error = 0;   // |written - source| / |source|, Frobenius norms; 0 of a copy
  bool narrowed_rows = false;  // its rows are no whole blocks of the type asked for: another one was taken
};

struct QuantizeReport {
  std::vector<QuantizedTensor> tensors;
  std::uint64_t bytes_before = 0;  // of the source's files
  std::uint64_t bytes_after = 0;
  std::vector<std::string> notes;  // what is left out, and what of the tokenizer GGUF cannot say
};

// The types that a file can be written in, by falling size.
std::vector<DType> quantize_types();
// The type by its name of any case ("Q4_K", "bf16"), if it is one of these.
std::optional<DType> quantize_type_from_name(std::string_view name);
// What --mix takes for sensitive matrices: q6_k for q4_k, q5_k and iq4_nl, q8_0 for the others below it, f16
// for q8_0, else the type itself.
DType wider_type(DType type);

// The type that `tensor`, one of `tensors`, gets. Vectors, and the small matrices that route tokens to
// experts, stay f32 or as they are.
DType target_type(std::span<const GgufTensor> tensors, const GgufTensor& tensor,
                  const QuantizeOptions& options);

// general.file_type of a file written so, as llama.cpp numbers it.
std::uint32_t ggml_file_type(DType type, bool mix);

// Called with bytes done and bytes in all, of the source.
using QuantizeProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Writes `path`: metadata, tokenizer and template as they are, but general.file_type and
// general.quantization_version; of a folder in GGUF's form (model/gguf_form.h, tokens/gguf_tokenizer.h), and
// what of the tokenizer has none is left out and said in the notes. The tensors follow in their order, in
// pieces of some MiB. Errors: (BadModel) a tensor that hone cannot decode, what gguf_form() refuses;
// (BadFile) the reading and the writing.
Result<QuantizeReport> quantize_file(const Checkpoint& checkpoint, const std::string& path,
                                     const QuantizeOptions& options, ThreadPool& pool,
                                     const QuantizeProgress& progress = {});

}  // namespace hone
