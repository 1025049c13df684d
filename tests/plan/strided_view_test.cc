#include "plan/strided_view.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

const Dim B = Dim::symbol('B');
const Dim T = Dim::symbol('T');

StridedView contiguous(Shape shape) {
  std::vector<Dim> strides = contiguous_strides(shape);
  return {std::move(shape), std::move(strides), Dim(0)};
}

Node view_node(std::string op, Attributes attributes) {
  Node node;
  node.op = std::move(op);
  node.attributes = std::move(attributes);
  return node;
}

TEST(StridedView, PermuteMovesStrides) {
  const Node node = view_node("permute", {{"axes", std::vector<std::int64_t>{0, 2, 1}}});
  const auto view = apply_view(node, contiguous({B, T, 8}), {B, 8, T});
  ASSERT_TRUE(view);
  EXPECT_EQ(shape_to_string(view->strides), "[8*T,1,8]");
  EXPECT_FALSE(is_contiguous(*view));
}

TEST(StridedView, SliceMovesTheOffset) {
  const Node node = view_node("slice", {{"axis", std::int64_t{-1}}, {"range", std::vector<Dim>{3, 5}}});
  const auto view = apply_view(node, contiguous({T, 8}), {T, 2});
  ASSERT_TRUE(view);
  EXPECT_EQ(view->offset.to_string(), "3");
  EXPECT_EQ(shape_to_string(view->strides), "[8,1]");
}

TEST(StridedView, BroadcastHasStrideZero) {
  const Node node = view_node("broadcast", {});
  const auto view = apply_view(node, contiguous({8}), {T, 8});
  ASSERT_TRUE(view);
  EXPECT_EQ(shape_to_string(view->strides), "[0,1]");
}

TEST(StridedView, ReshapeSplitsAndMergesWhatIsContiguous) {
  const Node node = view_node("reshape", {});
  const auto split = apply_view(node, contiguous({B, T, 64}), {B, T, 4, 16});
  ASSERT_TRUE(split);
  EXPECT_EQ(shape_to_string(split->strides), "[64*T,64,16,1]");
  const auto merged = apply_view(node, contiguous({B, T, 64}), {B * T, 64});
  ASSERT_TRUE(merged);
  EXPECT_EQ(shape_to_string(merged->strides), "[64,1]");
}

// A cache of capacity 100 seen through its first T rows, permuted, gains an axis of extent 1 without a copy.
TEST(StridedView, ReshapeOfAPermutedViewKeepsItsStridesWhereItCan) {
  const StridedView cache{{B, 2, T, 16}, {Dim(3200), 16, 32, 1}, Dim(0)};
  const auto view = apply_view(view_node("reshape", {}), cache, {B, 2, 1, T, 16});
  ASSERT_TRUE(view);
  EXPECT_EQ(view->strides[0].to_string(), "3200");
  EXPECT_EQ(view->strides[1].to_string(), "16");
  EXPECT_EQ(view->strides[3].to_string(), "32");
}

TEST(StridedView, ReshapeAcrossAPermutedAxisNeedsACopy) {
  const StridedView turned{{B, 2, T, 16}, {T * Dim(32), 16, 32, 1}, Dim(0)};
  EXPECT_FALSE(apply_view(view_node("reshape", {}), turned, {B, T * Dim(2), 16}));
}

}  // namespace
}  // namespace hone
