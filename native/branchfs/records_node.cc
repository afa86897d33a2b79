// The bytes of a node and what belongs to it. See records.h.
#include "native/branchfs/records.h"

namespace bough {
namespace {

void encodeTime(Encoder& out, const Time& time) {
  out.signedNumber(time.sec);
  out.number(time.nsec);
}
Time decodeTime(Decoder& in) {
  Time time;
  time.sec = in.signedNumber();
  time.nsec = in.number32();
  return time;
}

void encodeRef(Encoder& out, const BaseRef& ref) {
  out.number(ref.root);
  out.bytes(ref.path);
}
BaseRef decodeRef(Decoder& in) {
  BaseRef ref;
  ref.root = in.number32();
  ref.path = in.bytes();
  return ref;
}

void encodeContent(Encoder& out, const Content& content) {
  out.byte(static_cast<std::uint8_t>(content.where));
  if (content.where == Content::Where::Base) encodeRef(out, content.base);
  if (content.where == Content::Where::Object) {
    out.number(content.object);
    out.number(content.epoch);
  }
}
Content decodeContent(Decoder& in, const LeaseOf& leaseOf) {
  Content content;
  const std::uint8_t where = in.byte();
  if (where > static_cast<std::uint8_t>(Content::Where::Object)) in.fail();
  content.where = static_cast<Content::Where>(where);
  if (content.where == Content::Where::Base) content.base = decodeRef(in);
  if (content.where == Content::Where::Object) {
    content.object = in.number();
    content.epoch = in.number();
    if (in.ok()) content.lease = leaseOf(content.object);
  }
  return content;
}

void encodeIdentity(Encoder& out, const Identity& identity) {
  out.flag(identity.known);
  if (!identity.known) return;
  out.number(identity.dev);
  out.number(identity.ino);
  out.number(identity.size);
  encodeTime(out, identity.mtime);
  encodeTime(out, identity.ctime);
  encodeTime(out, identity.btime);
}
Identity decodeIdentity(Decoder& in) {
  Identity identity;
  identity.known = in.flag();
  if (!identity.known) return identity;
  identity.dev = in.number();
  identity.ino = in.number();
  identity.size = in.number();
  identity.mtime = decodeTime(in);
  identity.ctime = decodeTime(in);
  identity.btime = decodeTime(in);
  return identity;
}

}  // namespace

void encodeNode(Encoder& out, const Node& node) {
  out.byte(static_cast<std::uint8_t>(node.kind));
  out.number(node.mode);
  out.number(node.uid);
  out.number(node.gid);
  out.number(node.rdev);
  out.number(node.nlink);
  out.number(node.size);
  encodeTime(out, node.atime);
  encodeTime(out, node.mtime);
  encodeTime(out, node.ctime);
  encodeTime(out, node.btime);
  out.flag(node.timesHeld);
  out.bytes(node.target);
  out.number(node.xattrs ? node.xattrs->size() : 0);
  if (node.xattrs) {
    for (const auto& [name, value] : *node.xattrs) {
      out.bytes(name);
      out.bytes(value);
    }
  }
  encodeContent(out, node.content);
  out.flag(node.hasUnder);
  if (node.hasUnder) encodeRef(out, node.under);
  encodeIdentity(out, node.identity);
}

Node decodeNode(Decoder& in, const LeaseOf& leaseOf) {
  Node node;
  const std::uint8_t kind = in.byte();
  if (kind > static_cast<std::uint8_t>(Kind::BlockDevice)) in.fail();
  node.kind = static_cast<Kind>(kind);
  node.mode = in.number32();
  node.uid = in.number32();
  node.gid = in.number32();
  node.rdev = in.number();
  node.nlink = in.number32();
  node.size = in.number();
  node.atime = decodeTime(in);
  node.mtime = decodeTime(in);
  node.ctime = decodeTime(in);
  node.btime = decodeTime(in);
  node.timesHeld = in.flag();
  node.target = in.bytes();
  if (const std::size_t count = in.count()) {
    Xattrs xattrs;
    for (std::size_t i = 0; i < count && in.ok(); i++) {
      std::string name = in.bytes();
      xattrs.emplace(std::move(name), in.bytes());
    }
    node.xattrs = std::make_shared<const Xattrs>(std::move(xattrs));
  }
  node.content = decodeContent(in, leaseOf);
  node.hasUnder = in.flag();
  if (node.hasUnder) node.under = decodeRef(in);
  node.identity = decodeIdentity(in);
  return node;
}

}  // namespace bough
