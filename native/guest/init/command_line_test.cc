// The kernel's command line: our words among the others.
#include "native/guest/init/command_line.h"

#include <doctest/doctest.h>

#include <string>

using namespace bough::guest;

TEST_CASE("the words of bough, among those of the kernel") {
  const Settings settings = parseCommandLine(
      "console=hvc0 quiet bough.root=virtiofs:root  bough.workspace=/home/me/my%20project%3a2:work "
      "bough.workspace=/srv/x:data bough.hostname=tree\n");
  CHECK(settings.rootTag == "root");
  REQUIRE(settings.workspaces.size() == 2);
  CHECK(settings.workspaces[0].path == "/home/me/my project:2");
  CHECK(settings.workspaces[0].tag == "work");
  CHECK(settings.workspaces[1].path == "/srv/x");
  CHECK(settings.hostname == "tree");
  CHECK(settings.problems.empty());
}

TEST_CASE("without them it stays in the initramfs") {
  const Settings settings = parseCommandLine("");
  CHECK(settings.rootTag.empty());
  CHECK(settings.workspaces.empty());
  CHECK(settings.hostname == "bough");
}

TEST_CASE("words that make no sense are told and left out") {
  for (const std::string word :
       {"bough.root=ext4:sda", "bough.root=virtiofs:", "bough.workspace=relative:tag", "bough.workspace=/a",
        "bough.workspace=/a/../b:tag", "bough.workspace=/a//b:tag", "bough.workspace=/:tag", "bough.workspace=/a%2:tag",
        "bough.workspace=/a%00b:tag", "bough.workspace=/a:0123456789012345678901234567890123456",
        "bough.hostname=", "bough.colour=green"}) {
    CAPTURE(word);
    const Settings settings = parseCommandLine("quiet " + word);
    CHECK(settings.problems == std::vector<std::string>{word});
    CHECK(settings.rootTag.empty());
    CHECK(settings.workspaces.empty());
  }
}
