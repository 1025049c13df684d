#include "file/open.h"

#include <gtest/gtest.h>

#include "gguf_sample.h"
#include "temporary_folder.h"

namespace hone::testing {
namespace {

using std::string_literals::operator""s;

TEST(OpenCheckpoint, GoesByTheBytesNotTheName) {
  const TemporaryFolder folder;
  const auto gguf = open_checkpoint(folder.write("model.safetensors", GgufSample().bytes));
  ASSERT_TRUE(gguf.ok()) << gguf.error().message;
  EXPECT_EQ(gguf->format, "gguf");
  const auto safetensors = open_checkpoint(folder.write("model.gguf", "\x02\0\0\0\0\0\0\0{}"s));
  ASSERT_TRUE(safetensors.ok()) << safetensors.error().message;
  EXPECT_EQ(safetensors->format, "safetensors");
}

TEST(OpenCheckpoint, NamesWhatTheBytesAre) {
  const TemporaryFolder folder;
  struct Case {
    std::string bytes;
    const char* actual;
    const char* next_step;
  };
  for (const Case& test :
       {Case{"PK\x03\x04zip", "a PyTorch archive (zip), a pickle", "convert_hf_to_gguf.py"},
        Case{"\x80\x02}q", "a Python pickle (PyTorch)", "safetensors.torch.save_file"},
        Case{"tjgg....", "a GGML file from before GGUF", "llama.cpp"},
        Case{"version https://git-lfs.github.com/spec/v1", "a Git LFS pointer, not the model",
             "git lfs pull"},
        Case{"hello\x01 world", "a file that begins with \"hello\\x01 w\"", "GGUF"},
        Case{"x", "a file that begins with \"x\"", "GGUF"}}) {
    const std::string path = folder.write("file", test.bytes);
    const auto result = open_checkpoint(path);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::BadFile);
    EXPECT_EQ(result.error().where, path + ", byte 0");
    EXPECT_EQ(result.error().message, "the file must have a format that hone reads");
    EXPECT_EQ(result.error().expected, "a GGUF or safetensors file, or a Hugging Face folder");
    EXPECT_EQ(result.error().actual, test.actual);
    EXPECT_NE(result.error().next_step.find(test.next_step), std::string::npos) << result.error().next_step;
  }
}

TEST(OpenCheckpoint, BigEndianFilesAreRefusedByName) {
  const TemporaryFolder folder;
  const auto result = open_checkpoint(folder.write("file", "FUGG\0\0\0\3"s));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "a GGUF file must be little-endian");
}

}  // namespace
}  // namespace hone::testing
