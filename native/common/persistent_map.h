// A persistent (immutable, shared) hash map: a hash array mapped trie in compressed form (Steindorfer & Vinju, CHAMP,
// OOPSLA 2015). Copying is copying one pointer; two maps that come from each other share all that they have in common.
// branchfs/model.h builds trees from it, the snapshot writes its shared nodes once, the diff skips what is shared.
//
// Threads: a map that nobody changes may be read from any thread. `set` and `remove` change this map only: nodes that
// another map (or a copy of this one) can see are copied first, nodes that only this map owns are changed in place.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bough {

/// The map's hash. It is part of the store's format (a trie's shape follows from it): never change it without a new
/// format version.
inline std::uint64_t stableHash(std::uint64_t key) {  // the finalizer of splitmix64
  key += 0x9e3779b97f4a7c15ULL;
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9ULL;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebULL;
  return key ^ (key >> 31);
}
inline std::uint64_t stableHash(std::string_view key) {  // FNV-1a, mixed at the end
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return stableHash(hash);
}

template <typename K, typename V>
class PersistentMap {
  struct TrieNode;

 public:
  using Pair = std::pair<K, V>;

  /// A shared node of the trie: what a snapshot writes once however many maps hold it. Null for an empty map.
  class Handle {
   public:
    Handle() = default;
    Handle(const Handle& other) : node_(other.node_) {
      if (node_) node_->refs.fetch_add(1, std::memory_order_relaxed);
    }
    Handle(Handle&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
    Handle& operator=(Handle other) noexcept {
      std::swap(node_, other.node_);
      return *this;
    }
    ~Handle() { drop(node_); }
    explicit operator bool() const { return node_ != nullptr; }
    bool operator==(const Handle& other) const { return node_ == other.node_; }
    /// Identity of the node, for tables of nodes already written.
    const void* id() const { return node_; }
    /// Number of pairs in and below this node.
    std::size_t size() const { return node_ ? node_->size : 0; }
    /// Bit i of `leafMap`: slot i holds a pair; of `nodeMap`: a child. Pairs and children stand in slot order. A node
    /// at the end of the hash (`collision`) holds any number of pairs with one hash and no maps.
    std::uint32_t leafMap() const { return node_->leafMap; }
    std::uint32_t nodeMap() const { return node_->nodeMap; }
    bool collision() const { return node_->collision; }
    std::span<const Pair> pairs() const { return node_->pairs; }
    std::span<const Handle> children() const { return node_->children; }

   private:
    friend class PersistentMap;
    explicit Handle(TrieNode* node) : node_(node) {}  // takes over one reference
    static void drop(TrieNode* node) {
      if (node && node->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete node;
    }
    bool unshared() const { return node_->refs.load(std::memory_order_acquire) == 1; }
    TrieNode* node_ = nullptr;
  };

  bool empty() const { return !root_; }
  std::size_t size() const { return root_.size(); }
  /// True when both are the very same trie: equal without looking.
  bool sameAs(const PersistentMap& other) const { return root_ == other.root_; }
  bool operator==(const PersistentMap& other) const {
    bool equal = size() == other.size();
    if (equal) diff(*this, other, [&](const K&, const V*, const V*) { equal = false; });
    return equal;
  }

  /// The value of `key`, or null. The pointer is good as long as this map (or a copy) is not changed.
  template <typename Q>
  const V* find(const Q& key) const {
    return root_ ? findIn(root_.node_, stableHash(key), 0, key) : nullptr;
  }
  template <typename Q>
  bool contains(const Q& key) const {
    return find(key) != nullptr;
  }

  /// This map with `key` set; the map itself stays as it is.
  PersistentMap insert(K key, V value) const {
    PersistentMap result = *this;
    result.set(std::move(key), std::move(value));
    return result;
  }
  /// This map without `key`; the map itself stays as it is.
  template <typename Q>
  PersistentMap erase(const Q& key) const {
    PersistentMap result = *this;
    result.remove(key);
    return result;
  }

  /// Sets `key` in this map; copies of it made earlier do not see it.
  void set(K key, V value) {
    std::uint64_t hash = stableHash(key);
    if (!root_) root_ = Handle(new TrieNode);  // owned by the handle at once
    setIn(root_, hash, 0, std::move(key), std::move(value));
  }
  /// Takes `key` out; false if it was not there.
  template <typename Q>
  bool remove(const Q& key) {
    if (!contains(key)) return false;  // so that a miss copies nothing
    removeIn(root_, stableHash(key), 0, key);
    if (root_.node_->size == 0) root_ = Handle();
    return true;
  }
  void clear() { root_ = Handle(); }

  /// Calls f(key, value) for every pair, in the trie's order (by hash, the same in every process).
  template <typename F>
  void forEach(F&& f) const {
    if (root_) eachIn(*root_.node_, f);
  }

  /// Calls f(key, const V* inA, const V* inB) for each key whose value differs (`==`) or that only one of them has
  /// (null in the other). Subtrees that both share are skipped: the cost follows the difference.
  template <typename F>
  static void diff(const PersistentMap& a, const PersistentMap& b, F&& f) {
    diffNodes(a.root_.node_, b.root_.node_, 0, f);
  }

  /// Snapshots: the root to start from; walk `children()` and skip ids already written.
  const Handle& root() const { return root_; }
  /// Visits each node below `handle` once, children before their parents: `seen(id)` → true skips a node and what is
  /// below it; `emit(handle)` writes it.
  template <typename Seen, typename Emit>
  static void visitNodes(const Handle& handle, Seen&& seen, Emit&& emit) {
    if (!handle || seen(handle.id())) return;
    for (const Handle& child : handle.node_->children) visitNodes(child, seen, emit);
    emit(handle);
  }
  /// Snapshots, back: a node from its parts; a null handle when they do not fit each other (a damaged file).
  static Handle makeNode(std::uint32_t leafMap, std::uint32_t nodeMap, bool collision, std::vector<Pair> pairs,
                         std::vector<Handle> children) {
    if (collision ? (leafMap | nodeMap) != 0 || !children.empty() || pairs.empty()
                  : (leafMap & nodeMap) != 0 || std::popcount(leafMap) != static_cast<int>(pairs.size()) ||
                        std::popcount(nodeMap) != static_cast<int>(children.size())) {
      return Handle();
    }
    Handle handle(new TrieNode);
    TrieNode& node = *handle.node_;
    node.leafMap = leafMap;
    node.nodeMap = nodeMap;
    node.collision = collision;
    node.size = pairs.size();
    for (const Handle& child : children) {
      if (!child) return Handle();
      node.size += child.size();
    }
    node.pairs = std::move(pairs);
    node.children = std::move(children);
    return handle;
  }
  static PersistentMap fromRoot(Handle root) {
    PersistentMap map;
    map.root_ = std::move(root);
    return map;
  }
  /// True when every pair stands where its hash says. For what was read from a file.
  bool wellFormed() const { return !root_ || wellFormedIn(*root_.node_, 0, 0); }

 private:
  static constexpr int kBits = 5;
  static constexpr int kHashBits = 64;

  struct TrieNode {
    std::atomic<std::uint32_t> refs{1};
    std::uint32_t leafMap = 0;
    std::uint32_t nodeMap = 0;
    bool collision = false;
    std::size_t size = 0;
    std::vector<Pair> pairs;
    std::vector<Handle> children;

    std::size_t pairIndex(std::uint32_t bit) const {
      return static_cast<std::size_t>(std::popcount(leafMap & (bit - 1)));
    }
    std::size_t childIndex(std::uint32_t bit) const {
      return static_cast<std::size_t>(std::popcount(nodeMap & (bit - 1)));
    }
  };

  static std::uint32_t bitOf(std::uint64_t hash, int shift) { return 1U << ((hash >> shift) & 31U); }

  /// The node behind a handle, made this map's own first.
  static TrieNode& own(Handle& handle) {
    if (!handle.unshared()) {
      Handle copy(new TrieNode);
      TrieNode& to = *copy.node_;
      const TrieNode& from = *handle.node_;
      to.leafMap = from.leafMap;
      to.nodeMap = from.nodeMap;
      to.collision = from.collision;
      to.size = from.size;
      to.pairs.reserve(from.pairs.size() + 1);
      to.pairs = from.pairs;
      to.children = from.children;
      handle = std::move(copy);
    }
    return *handle.node_;
  }

  template <typename Q>
  static const V* findIn(const TrieNode* node, std::uint64_t hash, int shift, const Q& key) {
    while (!node->collision) {
      std::uint32_t bit = bitOf(hash, shift);
      if (node->leafMap & bit) {
        const Pair& pair = node->pairs[node->pairIndex(bit)];
        return pair.first == key ? &pair.second : nullptr;
      }
      if (!(node->nodeMap & bit)) return nullptr;
      node = node->children[node->childIndex(bit)].node_;
      shift += kBits;
    }
    for (const Pair& pair : node->pairs) {
      if (pair.first == key) return &pair.second;
    }
    return nullptr;
  }

  /// Sets key in the node; true when it is new.
  static bool setIn(Handle& handle, std::uint64_t hash, int shift, K&& key, V&& value) {
    TrieNode& node = own(handle);
    if (node.collision) {
      for (Pair& pair : node.pairs) {
        if (pair.first == key) {
          pair.second = std::move(value);
          return false;
        }
      }
      node.pairs.emplace_back(std::move(key), std::move(value));
      node.size++;
      return true;
    }
    std::uint32_t bit = bitOf(hash, shift);
    if (node.nodeMap & bit) {
      bool isNew = setIn(node.children[node.childIndex(bit)], hash, shift + kBits, std::move(key), std::move(value));
      node.size += isNew ? 1 : 0;
      return isNew;
    }
    auto at = node.pairs.begin() + static_cast<std::ptrdiff_t>(node.pairIndex(bit));
    if (!(node.leafMap & bit)) {
      node.pairs.emplace(at, std::move(key), std::move(value));
      node.leafMap |= bit;
      node.size++;
      return true;
    }
    if (at->first == key) {
      at->second = std::move(value);
      return false;
    }
    // Two keys in one slot: both go one level down.
    Handle child(new TrieNode);
    child.node_->collision = shift + kBits >= kHashBits;
    std::uint64_t otherHash = stableHash(at->first);
    setIn(child, otherHash, shift + kBits, std::move(at->first), std::move(at->second));
    setIn(child, hash, shift + kBits, std::move(key), std::move(value));
    node.pairs.erase(at);
    node.leafMap &= ~bit;
    node.children.insert(node.children.begin() + static_cast<std::ptrdiff_t>(node.childIndex(bit)), std::move(child));
    node.nodeMap |= bit;
    node.size++;
    return true;
  }

  /// Takes out a key that is there. A child left with one pair is pulled up, so that equal maps have equal shapes.
  template <typename Q>
  static void removeIn(Handle& handle, std::uint64_t hash, int shift, const Q& key) {
    TrieNode& node = own(handle);
    node.size--;
    if (node.collision) {
      std::erase_if(node.pairs, [&](const Pair& pair) { return pair.first == key; });
      return;
    }
    std::uint32_t bit = bitOf(hash, shift);
    if (node.leafMap & bit) {
      node.pairs.erase(node.pairs.begin() + static_cast<std::ptrdiff_t>(node.pairIndex(bit)));
      node.leafMap &= ~bit;
      return;
    }
    auto at = node.children.begin() + static_cast<std::ptrdiff_t>(node.childIndex(bit));
    removeIn(*at, hash, shift + kBits, key);
    if (at->node_->size != 1) return;
    Pair last = std::move(at->node_->pairs.front());  // ours alone: removeIn made it so
    node.children.erase(at);
    node.nodeMap &= ~bit;
    node.pairs.insert(node.pairs.begin() + static_cast<std::ptrdiff_t>(node.pairIndex(bit)), std::move(last));
    node.leafMap |= bit;
  }

  template <typename F>
  static void eachIn(const TrieNode& node, F& f) {
    for (const Pair& pair : node.pairs) f(pair.first, pair.second);
    for (const Handle& child : node.children) eachIn(*child.node_, f);
  }

  template <typename F>
  static void diffPair(const Pair& a, const Pair& b, F& f) {
    if (a.first == b.first) {
      if (!(a.second == b.second)) f(a.first, &a.second, &b.second);
      return;
    }
    f(a.first, &a.second, nullptr);
    f(b.first, nullptr, &b.second);
  }
  /// One pair on one side, a whole node on the other. `swapped`: the pair is on b's side.
  template <typename F>
  static void diffPairNode(const Pair& pair, const TrieNode& node, bool swapped, F& f) {
    bool met = false;
    auto visit = [&](const K& key, const V& value) {
      const V* mine = nullptr;
      if (key == pair.first) {
        met = true;
        mine = &pair.second;
        if (*mine == value) return;
      }
      swapped ? f(key, &value, mine) : f(key, mine, &value);
    };
    eachIn(node, visit);
    if (!met) swapped ? f(pair.first, nullptr, &pair.second) : f(pair.first, &pair.second, nullptr);
  }
  template <typename F>
  static void diffNodes(const TrieNode* a, const TrieNode* b, int shift, F& f) {
    if (a == b) return;
    if (!a || !b) {
      auto visit = [&](const K& key, const V& value) { a ? f(key, &value, nullptr) : f(key, nullptr, &value); };
      eachIn(a ? *a : *b, visit);
      return;
    }
    if (a->collision || b->collision) {  // both are: a collision stands only at the end of the hash
      for (const Pair& pair : a->pairs) {
        const V* other = findIn(b, 0, shift, pair.first);
        if (!other || !(*other == pair.second)) f(pair.first, &pair.second, other);
      }
      for (const Pair& pair : b->pairs) {
        if (!findIn(a, 0, shift, pair.first)) f(pair.first, nullptr, &pair.second);
      }
      return;
    }
    std::uint32_t all = a->leafMap | a->nodeMap | b->leafMap | b->nodeMap;
    for (; all; all &= all - 1) {
      std::uint32_t bit = all & (~all + 1);
      const Pair* pairA = a->leafMap & bit ? &a->pairs[a->pairIndex(bit)] : nullptr;
      const Pair* pairB = b->leafMap & bit ? &b->pairs[b->pairIndex(bit)] : nullptr;
      const TrieNode* nodeA = a->nodeMap & bit ? a->children[a->childIndex(bit)].node_ : nullptr;
      const TrieNode* nodeB = b->nodeMap & bit ? b->children[b->childIndex(bit)].node_ : nullptr;
      if (pairA && pairB) {
        diffPair(*pairA, *pairB, f);
      } else if (pairA && nodeB) {
        diffPairNode(*pairA, *nodeB, false, f);
      } else if (nodeA && pairB) {
        diffPairNode(*pairB, *nodeA, true, f);
      } else if (pairA) {
        f(pairA->first, &pairA->second, nullptr);
      } else if (pairB) {
        f(pairB->first, nullptr, &pairB->second);
      } else {
        diffNodes(nodeA, nodeB, shift + kBits, f);
      }
    }
  }

  static bool wellFormedIn(const TrieNode& node, int shift, std::uint64_t prefix) {
    std::uint64_t mask = shift >= kHashBits ? ~0ULL : (1ULL << shift) - 1;
    if (node.collision != (shift >= kHashBits)) return false;
    std::size_t next = 0;
    for (std::uint32_t map = node.leafMap; map; map &= map - 1, next++) {
      std::uint64_t hash = stableHash(node.pairs[next].first);
      if ((hash & mask) != prefix || ((hash >> shift) & 31U) != static_cast<unsigned>(std::countr_zero(map)))
        return false;
    }
    if (node.collision) {
      for (const Pair& pair : node.pairs) {
        if (stableHash(pair.first) != prefix) return false;
      }
    }
    next = 0;
    for (std::uint32_t map = node.nodeMap; map; map &= map - 1, next++) {
      std::uint64_t below = prefix | (static_cast<std::uint64_t>(std::countr_zero(map)) << shift);
      if (!wellFormedIn(*node.children[next].node_, shift + kBits, below)) return false;
    }
    return true;
  }

  Handle root_;
};

}  // namespace bough
