// What sessions were said to take against what they took, at points of batch and context, item by item. Each
// session has a process of its own, this program with --measure.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/random_model.h"
#include "engine_test_support.h"

namespace hone::test {
namespace {

using Json = nlohmann::json;

struct Point {
  std::int64_t batch = 1;
  std::int64_t context = 256;
  bool no_pack = false;
};

// One session at `point`: a chunk of each sequence, then a step of one token each.
int measure(const std::string& path, const Point& point) {
  EngineOptions options;
  options.batch = point.batch;
  options.context = point.context;
  options.no_pack = point.no_pack;
  options.threads = 2;
  const Result<std::unique_ptr<Session>> opened = Session::open(path, options);
  if (!opened.ok()) return 1;
  Session& session = **opened;
  const std::int64_t chunk = std::min<std::int64_t>(64, point.context - 1);
  for (const auto& [tokens, past] : {std::pair<std::int64_t, std::int64_t>{chunk, 0}, {1, chunk}}) {
    std::vector<Ids> ids;
    std::vector<Session::Row> rows;
    for (std::int64_t b = 0; b < point.batch; ++b) {
      ids.emplace_back(static_cast<std::size_t>(tokens), static_cast<std::int32_t>(7 + b));
      rows.push_back({b, tokens - 1});
    }
    const std::vector<std::int64_t> pasts(static_cast<std::size_t>(point.batch), past);
    if (!session.step(ids, pasts, rows).ok()) return 1;
  }
  Json items = Json::array();
  for (const Session::MeasuredItem& item : session.measured_items())
    items.push_back({item.name, item.predicted_bytes, item.measured_bytes});
  const Json out{{"predicted", session.memory().total_bytes},
                 {"measured", session.peak_bytes()},
                 {"file", session.memory().file_bytes},
                 {"items", items}};
  std::printf("%s\n", out.dump().c_str());
  return 0;
}

Json measured(const std::string& path, const Point& point) {
  const std::string command = std::filesystem::read_symlink("/proc/self/exe").string() + " --measure '" +
                              path + "' " + std::to_string(point.batch) + " " +
                              std::to_string(point.context) + (point.no_pack ? " 1" : " 0");
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string text;
  std::array<char, 4096> piece;
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe))
    text.append(piece.data(), count);
  return ::pclose(pipe) == 0 ? Json::parse(text, nullptr, false) : Json();
}

// Page by page an arena takes up to a page more than its bytes.
constexpr double kPage = 4096;

void expect_as_predicted(const std::string& path, const Point& point) {
  const Json json = measured(path, point);
  ASSERT_TRUE(json.is_object());
  const auto predicted = json["predicted"].get<double>();
  const auto taken = json["measured"].get<double>();
  std::printf("batch %lld, context %lld%s: predicted %.0f, measured %.0f (%.3f)\n",
              static_cast<long long>(point.batch), static_cast<long long>(point.context),
              point.no_pack ? ", no pack" : "", predicted, taken, taken / predicted);
  EXPECT_LE(taken, predicted);
  EXPECT_GE(taken, 0.95 * predicted);
  for (const Json& item : json["items"]) {
    const auto name = item[0].get<std::string>();
    const auto said = item[1].get<double>();
    const auto is = item[2].get<double>();
    std::printf("  %-24s predicted %12.0f, measured %12.0f\n", name.c_str(), said, is);
    EXPECT_LE(is, said + (name == "all else" ? 0 : kPage)) << name;
    if (name == "all else") continue;
    EXPECT_GE(is, 0.95 * said) << name;
  }
}

// 16 million weights of a shape of our own, written once.
class RandomModel : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    path_ = (std::filesystem::path(testing::TempDir()) /
             ("memory-points-" + std::to_string(::getpid()) + ".gguf"))
                .string();
    const ModelShape shape{.name = "points",
                           .architecture = "llama",
                           .layers = 4,
                           .dim = 512,
                           .ffn = 1408,
                           .heads = 8,
                           .kv_heads = 4,
                           .head_dim = 64,
                           .vocabulary = 8192,
                           .tied = true,
                           .attention_bias = false};
    const Status written = write_random_model(shape, {}, 5, path_);
    ASSERT_TRUE(written.ok()) << describe(written.error());
    ASSERT_GE(std::filesystem::file_size(path_), 15U << 20);
  }
  static void TearDownTestSuite() { std::filesystem::remove(path_); }
  static std::string path_;
};
std::string RandomModel::path_;

TEST_F(RandomModel, ThreePoints) {
  for (const Point& point : {Point{1, 256}, Point{4, 1024}, Point{2, 4096}})
    expect_as_predicted(path_, point);
}

// The weights' pages are the file's: what is left is as predicted too, and less by the packed weights.
TEST_F(RandomModel, WithoutPacking) {
  const Json packed = measured(path_, {4, 1024});
  const Json mapped = measured(path_, {4, 1024, true});
  ASSERT_TRUE(packed.is_object() && mapped.is_object());
  EXPECT_GE(mapped["file"].get<double>(), 15 << 20);
  EXPECT_LT(mapped["predicted"].get<double>(), packed["predicted"].get<double>() - (14 << 20));
  expect_as_predicted(path_, {4, 1024, true});
}

TEST(SmolLm2, ThreePoints) {
  const char* path = std::getenv("HONE_TEST_MODEL");
  if (path == nullptr) GTEST_SKIP() << "HONE_TEST_MODEL names no model";
  for (const Point& point : {Point{1, 256}, Point{4, 1024}, Point{1, 4096}}) expect_as_predicted(path, point);
}

}  // namespace
}  // namespace hone::test

int main(int count, char** values) {
  if (count == 6 && std::string_view(values[1]) == "--measure") {
    return hone::test::measure(values[2],
                               {std::atoll(values[3]), std::atoll(values[4]), values[5][0] == '1'});
  }
  testing::InitGoogleTest(&count, values);
  return RUN_ALL_TESTS();
}
