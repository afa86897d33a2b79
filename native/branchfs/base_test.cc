// Base and HideRules: reading the base by BaseRef, never through symlinks; globs; numbers of nodes.
#include "native/branchfs/base.h"

#include "native/branchfs/view_test_world.h"

using namespace bough;
using namespace bough::test;

TEST_CASE("globs match names as a shell does") {
  CHECK(matchesGlob("*.key", "a.key"));
  CHECK(matchesGlob("*.key", ".key"));
  CHECK_FALSE(matchesGlob("*.key", "a.keys"));
  CHECK(matchesGlob("a?c", "abc"));
  CHECK_FALSE(matchesGlob("a?c", "ac"));
  CHECK(matchesGlob("[a-c]x", "bx"));
  CHECK_FALSE(matchesGlob("[!a-c]x", "bx"));
  CHECK(matchesGlob("[]]", "]"));
  CHECK(matchesGlob("[x", "[x"));
  CHECK(matchesGlob("\\*", "*"));
  CHECK_FALSE(matchesGlob("\\*", "x"));
  CHECK(matchesGlob("a*b*c", "aXbYbZc"));
  CHECK_FALSE(matchesGlob("a*b*c", "aXbYbZ"));
  CHECK(matchesGlob("*", ""));
  CHECK_FALSE(matchesGlob("", "x"));
  CHECK(matchesGlob(std::string(200, '*') + "x", std::string(200, 'a') + "x"));
}

TEST_CASE("hide rules: names anywhere, paths from the root, any depth") {
  HideRules rules({"node_modules/", "/.env", "a/**/z", "deep/*.txt", "**/cache/tmp", ""});
  CHECK(rules.hides("", "node_modules"));
  CHECK(rules.hides("x/y", "node_modules"));
  CHECK(rules.hides("", ".env"));
  CHECK_FALSE(rules.hides("sub", ".env"));
  CHECK(rules.hides("a", "z"));
  CHECK(rules.hides("a/b/c", "z"));
  CHECK_FALSE(rules.hides("b/a", "z"));
  CHECK(rules.hides("deep", "x.txt"));
  CHECK_FALSE(rules.hides("deep/er", "x.txt"));
  CHECK(rules.hides("x/cache", "tmp"));
  CHECK(rules.hides("cache", "tmp"));
  CHECK_FALSE(HideRules().hides("", "x"));
  CHECK(HideRules({""}).empty());
}

TEST_CASE("the base is read by reference, and never through symlinks or out of itself") {
  TempFolder temp;
  fs::path root = temp.path / "base";
  put(root / "dir/file", "text");
  put(temp.path / "outside", "outside");
  fs::create_directory_symlink("dir", root / "link");
  fs::create_symlink("../outside", root / "out");
  auto base = Base::open(root.string());
  REQUIRE(base);
  const Base& b = **base;
  CHECK(b.stat(BaseRef{0, "dir/file"})->size == 4);
  CHECK(b.stat(BaseRef{0, ""})->kind == Kind::Directory);
  CHECK(b.stat(BaseRef{0, "link"})->kind == Kind::Symlink);
  CHECK(*b.readlink(BaseRef{0, "link"}) == "dir");
  CHECK(errorOf(b.readlink(BaseRef{0, "dir"})) == EINVAL);
  CHECK(errorOf(b.stat(BaseRef{0, "link/file"})) == ELOOP);
  CHECK(errorOf(b.stat(BaseRef{0, "../outside"})) == ENOENT);
  CHECK(errorOf(b.openFile(BaseRef{0, "out"})) == EINVAL);
  CHECK(errorOf(b.openFile(BaseRef{0, "dir"})) == EINVAL);
  CHECK(errorOf(b.list(BaseRef{0, "link"})) == ENOTDIR);
  CHECK(errorOf(b.stat(BaseRef{1, "x"})) == ENOENT);
  CHECK(b.list(BaseRef{0, ""})->size() == 3);
  CHECK(errorOf(Base::open((temp.path / "nowhere").string())) == ENOENT);
  Identity before = *b.identityOf(BaseRef{0, "dir/file"});
  CHECK(before == *b.identityOf(BaseRef{0, "dir/file"}));
  put(root / "dir/file", "longer text");
  CHECK_FALSE(before == *b.identityOf(BaseRef{0, "dir/file"}));
}

TEST_CASE("kept files are found by their number, files as well as folders") {
  TempFolder temp;
  put(temp.path / "base/x", "x");
  put(temp.path / "kept/1/dir/file", "in a kept folder");
  put(temp.path / "kept/2", "a kept file");
  fs::create_symlink("target", temp.path / "kept/3");
  auto base = Base::open((temp.path / "base").string());
  REQUIRE(base);
  (*base)->setKept([&](std::uint32_t number) -> Result<UniqueFd> {
    UniqueFd fd(::open((temp.path / "kept" / std::to_string(number)).c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return sys(errno);
    return fd;
  });
  auto read = [&](const BaseRef& ref) {
    auto fd = (*base)->openFile(ref);
    if (!fd) return std::string("error: ") + std::strerror(fd.error().errnum);
    std::string text(100, '\0');
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(fd->get(), text.data(), text.size()))));
    return text;
  };
  CHECK(read(BaseRef{1, "dir/file"}) == "in a kept folder");
  CHECK(read(BaseRef{2, ""}) == "a kept file");
  CHECK((*base)->stat(BaseRef{2, ""})->kind == Kind::File);
  CHECK(*(*base)->readlink(BaseRef{3, ""}) == "target");
  CHECK((*base)->list(BaseRef{1, ""})->size() == 1);
  CHECK(errorOf((*base)->stat(BaseRef{4, ""})) == ENOENT);
}

TEST_CASE("paths longer than PATH_MAX are reached") {
  TempFolder temp;
  fs::create_directories(temp.path / "base");
  auto base = Base::open((temp.path / "base").string());
  REQUIRE(base);
  UniqueFd at(::open((temp.path / "base").c_str(), O_PATH | O_DIRECTORY));
  BaseRef ref;
  const std::string name(200, 'd');
  for (int i = 0; i < 30; i++) {
    REQUIRE(::mkdirat(at.get(), name.c_str(), 0755) == 0);
    at = UniqueFd(::openat(at.get(), name.c_str(), O_PATH | O_DIRECTORY));
    REQUIRE(at);
    ref = below(ref, name);
  }
  CHECK(ref.path.size() > 4096);
  CHECK((*base)->stat(ref)->kind == Kind::Directory);
  CHECK((*base)->list(ref)->empty());
  CHECK(errorOf((*base)->stat(below(ref, "no"))) == ENOENT);
}

TEST_CASE("node numbers: the root is 1, files have their inode, other devices a number of their own") {
  TempFolder temp;
  put(temp.path / "file", "x");
  auto base = Base::open(temp.path.string());
  REQUIRE(base);
  CHECK((*base)->idOf(*(*base)->stat(BaseRef{})) == kRootNode);
  BaseStat file = *(*base)->stat(BaseRef{0, "file"});
  CHECK((*base)->idOf(file) == file.ino);
  CHECK((*base)->idOf(file.dev, 1) > (1ULL << 61));
  NodeId other = (*base)->idOf(file.dev + 1, file.ino);
  CHECK(other >= (1ULL << 61));
  CHECK(other < kFirstNewNode);
  CHECK(other == (*base)->idOf(file.dev + 1, file.ino));
  CHECK((*base)->idOf(file.dev, 1ULL << 63) < kFirstNewNode);
}
