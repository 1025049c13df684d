#include "plan/offsets.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/philox.h"

namespace hone {
namespace {

struct Item {
  std::int64_t bytes = 0;
  int first = 0;
  int last = 0;
};

bool together(const Item& a, const Item& b) {
  return a.first <= b.last && b.first <= a.last;
}

struct Packing {
  std::vector<std::int64_t> offsets;
  std::int64_t peak = 0;
};

// Each item in turn at the lowest offset at which it overlaps nothing that is placed and alive with it.
Packing place(const std::vector<Item>& items, const std::vector<int>& order) {
  Packing out{std::vector<std::int64_t>(items.size(), 0), 0};
  std::vector<int> placed;  // sorted by offset
  for (const int index : order) {
    const Item& item = items[static_cast<std::size_t>(index)];
    std::int64_t offset = 0;
    for (const int other : placed) {
      const Item& neighbour = items[static_cast<std::size_t>(other)];
      if (!together(item, neighbour)) continue;
      const std::int64_t begin = out.offsets[static_cast<std::size_t>(other)];
      if (offset + item.bytes <= begin) break;
      offset = std::max(offset, begin + neighbour.bytes);
    }
    out.offsets[static_cast<std::size_t>(index)] = offset;
    out.peak = std::max(out.peak, offset + item.bytes);
    const auto at = std::upper_bound(placed.begin(), placed.end(), index, [&](int a, int b) {
      return out.offsets[static_cast<std::size_t>(a)] < out.offsets[static_cast<std::size_t>(b)];
    });
    placed.insert(at, index);
  }
  return out;
}

std::int64_t lower_bound(const std::vector<Item>& items) {
  int last = 0;
  for (const Item& item : items) last = std::max(last, item.last);
  std::vector<std::int64_t> change(static_cast<std::size_t>(last) + 2, 0);
  for (const Item& item : items) {
    change[static_cast<std::size_t>(item.first)] += item.bytes;
    change[static_cast<std::size_t>(item.last) + 1] -= item.bytes;
  }
  std::int64_t live = 0;
  std::int64_t most = 0;
  for (const std::int64_t delta : change) {
    live += delta;
    most = std::max(most, live);
  }
  return most;
}

std::vector<int> sorted_by(std::size_t count, const auto& before) {
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), before);
  return order;
}

// Work that repair() may do for one order: places of items, each compared with those before it.
constexpr std::size_t kRepairWork = std::size_t{1} << 22;
constexpr std::size_t kMostRepairs = 300;

// A tower is an item that ends at the peak, one that it stands on, and so on down: every lower place was
// taken when they were placed. The tops of all the highest towers, one for each layer of a model, go first
// instead, again and again; every fourth time one item of one tower does, drawn from a fixed seed, for always
// the tops run in circles. `best` becomes the best packing on the way; true if that is a new one.
bool repair(const std::vector<Item>& items, std::vector<int> order, std::int64_t lower_bound_bytes,
            Packing& best) {
  const std::size_t rounds = std::min(kMostRepairs, kRepairWork / (items.size() * items.size() + 1));
  bool better = false;
  Packing packing = place(items, order);
  const auto end_of = [&](int index) {
    return packing.offsets[static_cast<std::size_t>(index)] + items[static_cast<std::size_t>(index)].bytes;
  };
  for (std::size_t round = 0; round < rounds && best.peak > lower_bound_bytes; ++round) {
    if (round % 4 < 3) {
      std::stable_partition(order.begin(), order.end(),
                            [&](int index) { return end_of(index) == packing.peak; });
    } else {
      std::vector<int> tower;
      for (std::int64_t end = packing.peak; end > 0;
           end = packing.offsets[static_cast<std::size_t>(tower.back())]) {
        tower.push_back(*std::find_if(order.begin(), order.end(), [&](int index) {
          return end_of(index) == end &&
                 (tower.empty() || together(items[static_cast<std::size_t>(index)],
                                            items[static_cast<std::size_t>(tower.back())]));
        }));
      }
      const PhiloxCounter drawn = philox_4x32_10({static_cast<std::uint32_t>(round), 0, 0, 0}, {0, 0});
      const auto chosen = std::find(order.begin(), order.end(), tower[drawn[0] % tower.size()]);
      std::rotate(order.begin(), chosen, chosen + 1);
    }
    packing = place(items, order);
    if (packing.peak >= best.peak) continue;
    best = packing;
    better = true;
  }
  return better;
}

// A formula names those below it in full, so towers of values of unlike sizes can double it at every storey.
constexpr std::size_t kLongestFormula = 512;

// `formula`, or, if it is too long to carry around, its value at the bound or more: offsets and ends only
// fall as symbols do, so what was placed there keeps clear of its neighbours at every size.
Dim bounded(const Dim& formula, std::int64_t at_bound) {
  return formula.to_string().size() <= kLongestFormula ? formula : Dim(at_bound);
}

// Items by the offset they were placed at, lowest first; those of one time keep this order at every size.
void write_formulas(std::span<const Lifetime> lifetimes, const std::vector<Item>& items,
                    const Packing& packing, OffsetPlan& plan) {
  const std::vector<int> order = sorted_by(items.size(), [&](int a, int b) {
    return packing.offsets[static_cast<std::size_t>(a)] < packing.offsets[static_cast<std::size_t>(b)];
  });
  plan.offsets.assign(items.size(), Dim(0));
  std::vector<Dim> ends(items.size(), Dim(0));
  std::vector<bool> covered(items.size(), false);
  std::vector<std::size_t> neighbours;
  for (std::size_t position = 0; position < order.size(); ++position) {
    const auto i = static_cast<std::size_t>(order[position]);
    Dim offset(0);
    // From the top down: what lies under a neighbour at some time ends no higher than that neighbour begins.
    neighbours.clear();
    for (std::size_t below = position; below-- > 0;) {
      const auto j = static_cast<std::size_t>(order[below]);
      if (!together(items[i], items[j])) continue;
      covered[j] = true;
      const bool hidden = std::ranges::any_of(
          neighbours, [&](std::size_t above) { return together(items[above], items[j]); });
      if (!hidden) offset = max(offset, ends[j]);
      neighbours.push_back(j);
    }
    offset = bounded(offset, packing.offsets[i]);
    ends[i] = offset + round_up(lifetimes[i].bytes, kArenaAlignment);
    plan.offsets[i] = std::move(offset);
  }
  plan.peak = Dim(0);
  for (const int index : order) {
    const auto i = static_cast<std::size_t>(index);
    if (!covered[i]) plan.peak = bounded(max(plan.peak, ends[i]), packing.peak);
  }
}

}  // namespace

Result<OffsetPlan> plan_offsets(std::span<const Lifetime> lifetimes, const Bindings& bound, bool formulas) {
  std::vector<Item> items;
  items.reserve(lifetimes.size());
  for (const Lifetime& life : lifetimes) {
    const std::int64_t bytes = HONE_TRY(life.bytes.evaluate(bound));
    items.push_back(
        {(bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment, life.first, life.last});
  }
  const auto item = [&](int index) -> const Item& { return items[static_cast<std::size_t>(index)]; };
  const auto length = [&](int index) { return item(index).last - item(index).first; };
  const std::array<std::pair<std::string_view, std::vector<int>>, 4> orders{{
      {"largest first", sorted_by(items.size(), [&](int a, int b) { return item(a).bytes > item(b).bytes; })},
      {"longest-lived first", sorted_by(items.size(), [&](int a, int b) { return length(a) > length(b); })},
      {"in order of execution",
       sorted_by(items.size(), [&](int a, int b) { return item(a).first < item(b).first; })},
      {"largest area first", sorted_by(items.size(),
                                       [&](int a, int b) {
                                         return item(a).bytes * (length(a) + 1) >
                                                item(b).bytes * (length(b) + 1);
                                       })},
  }};
  OffsetPlan plan;
  plan.lower_bound_bytes = lower_bound(items);
  Packing best;
  std::vector<std::pair<std::int64_t, std::size_t>> ranking;  // of the orders, by peak
  for (std::size_t i = 0; i < orders.size() && (i == 0 || best.peak > plan.lower_bound_bytes); ++i) {
    Packing packing = place(items, orders[i].second);
    ranking.emplace_back(packing.peak, i);
    if (i > 0 && packing.peak >= best.peak) continue;
    best = std::move(packing);
    plan.order = orders[i].first;
  }
  std::stable_sort(ranking.begin(), ranking.end());
  for (const auto& [peak, i] : ranking) {
    if (best.peak == plan.lower_bound_bytes) break;
    if (repair(items, orders[i].second, plan.lower_bound_bytes, best))
      plan.order = std::string(orders[i].first) + ", repaired";
  }
  if (!formulas) {
    plan.offsets.assign(best.offsets.begin(), best.offsets.end());
    plan.peak = Dim(best.peak);
    plan.peak_bytes = best.peak;
    return plan;
  }
  write_formulas(lifetimes, items, best, plan);
  plan.peak_bytes = HONE_TRY(plan.peak.evaluate(bound));
  return plan;
}

}  // namespace hone
