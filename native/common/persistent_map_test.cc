// PersistentMap against std::map: random changes, snapshots that must stay, differences, and the way through a file.
#include "native/common/persistent_map.h"

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <random>
#include <unordered_map>

namespace {

using bough::PersistentMap;
using Map = PersistentMap<std::string, int>;
using Model = std::map<std::string, int>;

/// A key whose hash is chosen: many of them collide in all 64 bits.
struct Crowded {
  std::uint64_t hash = 0;
  int name = 0;
  bool operator==(const Crowded&) const = default;
};
std::uint64_t stableHash(const Crowded& key) { return key.hash; }

Model contents(const Map& map) {
  Model all;
  map.forEach([&](const std::string& key, int value) { all[key] = value; });
  return all;
}

Model expectedDiff(const Model& a, const Model& b) {
  Model keys;
  for (const auto& [key, value] : a) {
    auto other = b.find(key);
    if (other == b.end() || other->second != value) keys[key] = other == b.end() ? 1 : 3;
  }
  for (const auto& [key, value] : b) {
    if (!a.contains(key)) keys[key] = 2;
  }
  return keys;
}

Model actualDiff(const Map& a, const Map& b) {
  Model keys;
  Map::diff(a, b, [&](const std::string& key, const int* inA, const int* inB) {
    CHECK_FALSE(keys.contains(key));
    keys[key] = (inA ? 1 : 0) | (inB ? 2 : 0);
  });
  return keys;
}

}  // namespace

TEST_CASE("a persistent map does what std::map does, and old copies stay") {
  const unsigned seed = 20240117;
  CAPTURE(seed);
  std::mt19937 random(seed);
  Map map;
  Model model;
  std::vector<std::pair<Map, Model>> snapshots;
  for (int step = 0; step < 20000; step++) {
    std::string key = "name-" + std::to_string(random() % 3000);
    if (random() % 3 == 0) {
      CHECK(map.remove(key) == (model.erase(key) > 0));
    } else {
      int value = static_cast<int>(random() % 5);
      map.set(key, value);
      model[key] = value;
    }
    if (step % 1000 == 0) snapshots.emplace_back(map, model);
  }
  CHECK(map.size() == model.size());
  CHECK(contents(map) == model);
  CHECK(map.wellFormed());
  for (const auto& [key, value] : model) {
    const int* found = map.find(std::string_view(key));
    REQUIRE(found);
    CHECK(*found == value);
  }
  CHECK(map.find("nobody") == nullptr);
  for (const auto& [oldMap, oldModel] : snapshots) {
    CHECK(contents(oldMap) == oldModel);
    CHECK(actualDiff(oldMap, map) == expectedDiff(oldModel, model));
    CHECK(actualDiff(map, oldMap) == expectedDiff(model, oldModel));
  }
  for (const auto& [key, value] : model) map.remove(key);
  CHECK(map.empty());
}

TEST_CASE("insert and erase leave the map itself alone") {
  Map empty;
  Map one = empty.insert("a", 1);
  Map two = one.insert("b", 2);
  Map back = two.erase(std::string("b"));
  CHECK(empty.empty());
  CHECK(one.size() == 1);
  CHECK(two.size() == 2);
  CHECK(back == one);
  CHECK_FALSE(back == two);
  CHECK(two.erase(std::string("c")).sameAs(two));
}

TEST_CASE("keys with one and the same hash are kept apart") {
  PersistentMap<Crowded, int> map;
  for (int i = 0; i < 200; i++) map.set(Crowded{static_cast<std::uint64_t>(i % 4), i}, i);
  CHECK(map.size() == 200);
  CHECK(map.wellFormed());
  auto copy = map;
  for (int i = 0; i < 200; i += 2) CHECK(map.remove(Crowded{static_cast<std::uint64_t>(i % 4), i}));
  for (int i = 0; i < 200; i++) {
    const int* found = map.find(Crowded{static_cast<std::uint64_t>(i % 4), i});
    CHECK((found != nullptr) == (i % 2 == 1));
    CHECK(copy.find(Crowded{static_cast<std::uint64_t>(i % 4), i}) != nullptr);
  }
  int differing = 0;
  PersistentMap<Crowded, int>::diff(map, copy, [&](const Crowded&, const int* a, const int* b) {
    CHECK(a == nullptr);
    CHECK(b != nullptr);
    differing++;
  });
  CHECK(differing == 100);
}

TEST_CASE("a difference costs what differs, not what is shared") {
  struct Counted {
    int value = 0;
    std::size_t* compared = nullptr;
    bool operator==(const Counted& other) const {
      ++*compared;
      return value == other.value;
    }
  };
  std::size_t compared = 0;
  PersistentMap<std::uint64_t, Counted> a;
  for (std::uint64_t i = 0; i < 100000; i++) a.set(i, Counted{1, &compared});
  auto b = a;
  b.set(777, Counted{2, &compared});
  std::size_t found = 0;
  decltype(a)::diff(a, b, [&](std::uint64_t key, const Counted*, const Counted*) { found += key == 777 ? 1 : 100; });
  CHECK(found == 1);
  CHECK(compared < 200);
}

TEST_CASE("nodes written once come back as the same maps, still shared") {
  Map first;
  for (int i = 0; i < 5000; i++) first.set("key" + std::to_string(i), i);
  Map second = first.insert("one more", 1);
  std::unordered_map<const void*, std::size_t> written;
  std::vector<Map::Handle> handles;
  std::vector<Map::Handle> rebuilt;
  auto write = [&](const Map& map) {
    Map::visitNodes(
        map.root(), [&](const void* id) { return written.contains(id); },
        [&](const Map::Handle& node) {
          written[node.id()] = rebuilt.size();
          std::vector<Map::Handle> children;
          for (const Map::Handle& child : node.children()) children.push_back(rebuilt[written.at(child.id())]);
          rebuilt.push_back(Map::makeNode(node.leafMap(), node.nodeMap(), node.collision(),
                                          {node.pairs().begin(), node.pairs().end()}, std::move(children)));
        });
    return Map::fromRoot(rebuilt[written.at(map.root().id())]);
  };
  Map firstBack = write(first);
  std::size_t nodes = rebuilt.size();
  Map secondBack = write(second);
  CHECK(rebuilt.size() < nodes + 8);
  CHECK(contents(firstBack) == contents(first));
  CHECK(contents(secondBack) == contents(second));
  CHECK(secondBack.wellFormed());
  CHECK(actualDiff(firstBack, secondBack) == Model{{"one more", 2}});
  CHECK_FALSE(Map::makeNode(3, 0, false, {{"x", 1}}, {}));
  CHECK_FALSE(Map::makeNode(1, 1, false, {{"x", 1}}, {Map::makeNode(1, 0, false, {{"y", 1}}, {})}));
  int misplaced = 0;
  for (int slot = 0; slot < 32; slot++) {
    misplaced += Map::fromRoot(Map::makeNode(1U << slot, 0, false, {{"key1", 1}}, {})).wellFormed() ? 0 : 1;
  }
  CHECK(misplaced == 31);
}
