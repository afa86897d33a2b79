// See boot.h. The structures: Xen's public/arch-x86/hvm/start_info.h; the entry note: XEN_ELFNOTE_PHYS32_ENTRY.
#include "native/vmm/arch/x64/boot.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "native/vmm/arch/x64/layout.h"
#include "native/vmm/arch/x64/mp_table.h"

namespace bough::vmm {

namespace {

constexpr std::uint32_t kStartMagic = 0x336E'C578;
constexpr std::uint32_t kEntryNote = 18;
constexpr std::size_t kMostHeaders = 64;
constexpr std::size_t kLargestNotes = std::size_t{64} << 10;

struct StartInfo {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t flags;
  std::uint32_t modules;
  std::uint64_t moduleList;
  std::uint64_t commandLine;
  std::uint64_t rsdp;
  std::uint64_t memoryMap;
  std::uint32_t memoryMapEntries;
  std::uint32_t reserved;
};
static_assert(sizeof(StartInfo) == 56);

struct Module {
  std::uint64_t address;
  std::uint64_t size;
  std::uint64_t commandLine;
  std::uint64_t reserved;
};

struct MapEntry {
  std::uint64_t address;
  std::uint64_t size;
  std::uint32_t type;
  std::uint32_t reserved;
};
constexpr std::uint32_t kMapRam = 1;

Error badKernel(const std::string& why) {
  return Error{ENOEXEC, "E_KERNEL",
               "the guest kernel cannot be started: " + why +
                   ": give an uncompressed vmlinux for x86-64 that was built with CONFIG_PVH"};
}

bool readAt(int fd, std::uint64_t offset, std::span<std::byte> to) {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t count = ::pread(fd, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

/// Straight into RAM, in pieces through this process's own memory, so that every store is checked.
bool readInto(int fd, std::uint64_t offset, const GuestMemory& memory, GuestAddress to, std::uint64_t size) {
  std::vector<std::byte> piece(std::min<std::uint64_t>(size, std::uint64_t{1} << 20));
  for (std::uint64_t done = 0; done < size;) {
    const std::size_t count = std::min<std::uint64_t>(piece.size(), size - done);
    const auto part = std::span(piece).first(count);
    const auto place = advance(to, done);
    if (!place || !readAt(fd, offset + done, part) || !memory.write(*place, part)) return false;
    done += count;
  }
  return true;
}

template <typename T>
std::span<std::byte> bytesOf(T& value) {
  return std::as_writable_bytes(std::span<T, 1>(&value, 1));
}

/// The entry point in a PT_NOTE segment's bytes.
std::optional<std::uint32_t> entryIn(std::span<const std::byte> notes) {
  const auto padded = [](std::uint64_t size) { return (size + 3) & ~std::uint64_t{3}; };
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note{};
    std::memcpy(&note, notes.data(), sizeof note);
    const std::uint64_t value = sizeof note + padded(note.n_namesz);
    const std::uint64_t next = value + padded(note.n_descsz);
    if (value + note.n_descsz > notes.size()) return std::nullopt;
    const bool xen = note.n_namesz == 4 && std::memcmp(notes.data() + sizeof note, "Xen", 4) == 0;
    if (xen && note.n_type == kEntryNote && note.n_descsz >= 4) {
      std::uint32_t entry = 0;
      std::memcpy(&entry, notes.data() + value, sizeof entry);
      return entry;
    }
    notes = notes.subspan(std::min<std::uint64_t>(next, notes.size()));
  }
  return std::nullopt;
}

struct Loaded {
  std::uint32_t entry = 0;
  std::uint64_t end = 0;
};

Result<Loaded> loadElf(const GuestMemory& memory, int fd) {
  Elf64_Ehdr header{};
  if (!readAt(fd, 0, bytesOf(header))) return badKernel("it is too short to be an ELF file");
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return badKernel("it is not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
    return badKernel("it is not for x86-64");
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 || header.e_phnum > kMostHeaders) {
    return badKernel("its program headers are damaged");
  }
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!readAt(fd, header.e_phoff, std::as_writable_bytes(std::span(segments)))) {
    return badKernel("its program headers are cut off");
  }
  Loaded loaded;
  std::optional<std::uint32_t> entry;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD) {
      // Boot data lies below; the rest of a segment (.bss) is RAM's own zeroes.
      if (segment.p_paddr < raw(layout::kKernelMin)) return badKernel("it wants to be below 1 MiB");
      if (segment.p_filesz > segment.p_memsz || !memory.contains(GuestAddress{segment.p_paddr}, segment.p_memsz)) {
        return badKernel("it does not fit into " + std::to_string(memory.size() >> 20) + " MiB of RAM");
      }
      if (!readInto(fd, segment.p_offset, memory, GuestAddress{segment.p_paddr}, segment.p_filesz)) {
        return badKernel("it is cut off");
      }
      loaded.end = std::max(loaded.end, segment.p_paddr + segment.p_memsz);
    } else if (segment.p_type == PT_NOTE && segment.p_filesz <= kLargestNotes) {
      std::vector<std::byte> notes(segment.p_filesz);
      if (!readAt(fd, segment.p_offset, notes)) return badKernel("its notes are cut off");
      if (const auto found = entryIn(notes)) entry = found;
    }
  }
  if (!entry || loaded.end == 0) return badKernel("it has no PVH entry");
  if (!memory.contains(GuestAddress{*entry}, 1)) return badKernel("its entry lies outside RAM");
  loaded.entry = *entry;
  return loaded;
}

/// As high as it fits below the end of low RAM, where a kernel that unpacks itself does not reach.
Result<Module> loadInitramfs(const GuestMemory& memory, int fd, std::uint64_t kernelEnd) {
  const auto error = [](const std::string& why) {
    return Error{EINVAL, "E_INITRAMFS", "the initramfs cannot be loaded: " + why};
  };
  struct stat status{};
  if (::fstat(fd, &status) != 0) return error(std::strerror(errno));
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t top = memory.regions().front().size;
  const std::uint64_t start = size < top ? (top - size) & ~std::uint64_t{0xFFF} : 0;
  if (size == 0 || start < kernelEnd) {
    return error(size == 0 ? "it is empty" : "there is not enough RAM for it: give the machine more");
  }
  if (!readInto(fd, 0, memory, GuestAddress{start}, size)) return error("it cannot be read to its end");
  return Module{start, size, 0, 0};
}

}  // namespace

Result<std::uint32_t> loadKernel(const GuestMemory& memory, const BootFiles& files) {
  if (files.commandLine.size() >= layout::kCommandLineSize || files.commandLine.find('\0') != std::string::npos) {
    return Error{EINVAL, "E_COMMAND_LINE",
                 "the kernel's command line has " + std::to_string(files.commandLine.size()) +
                     " characters or a zero in it: at most " + std::to_string(layout::kCommandLineSize - 1) +
                     " characters are possible"};
  }
  BOUGH_ASSIGN(const Loaded kernel, loadElf(memory, files.kernel));
  StartInfo info{};
  info.magic = kStartMagic;
  info.version = 1;
  if (files.initramfs >= 0) {
    BOUGH_ASSIGN(const Module module, loadInitramfs(memory, files.initramfs, kernel.end));
    info.modules = 1;
    info.moduleList = raw(layout::kModuleList);
    if (!memory.store(layout::kModuleList, module)) return badKernel("there is no RAM for its boot data");
  }
  std::vector<MapEntry> map{{0, raw(layout::kMpTable), kMapRam, 0}};
  const std::span<const RamRegion> regions = memory.regions();
  map.push_back({raw(layout::kKernelMin), regions.front().size - raw(layout::kKernelMin), kMapRam, 0});
  for (const RamRegion& region : regions.subspan(1)) map.push_back({raw(region.start), region.size, kMapRam, 0});

  info.commandLine = raw(layout::kCommandLine);
  info.memoryMap = raw(layout::kMemoryMap);
  info.memoryMapEntries = static_cast<std::uint32_t>(map.size());
  const std::string line = files.commandLine + '\0';
  const bool written =
      memory.store(layout::kStartInfo, info) && memory.write(layout::kMemoryMap, std::as_bytes(std::span(map))) &&
      memory.write(layout::kCommandLine, std::as_bytes(std::span(line))) && writeMpTable(memory, files.vcpus);
  if (!written) return badKernel("there is no RAM for its boot data");
  return kernel.entry;
}

void enterByPvh(std::uint32_t entry, kvm_regs& registers, kvm_sregs& special) {
  kvm_segment data{};
  data.limit = 0xFFFF'FFFF;
  data.selector = 0x10;
  data.type = 3;
  data.present = 1;
  data.db = 1;
  data.s = 1;
  data.g = 1;
  kvm_segment code = data;
  code.selector = 0x8;
  code.type = 11;
  kvm_segment task{};
  task.limit = 0x67;
  task.type = 11;
  task.present = 1;
  special.cs = code;
  special.ds = special.es = special.fs = special.gs = special.ss = data;
  special.tr = task;
  constexpr std::uint64_t kProtectedMode = 0x1;
  constexpr std::uint64_t kExtensionType = 0x10;
  special.cr0 = kProtectedMode | kExtensionType;
  special.cr4 = 0;
  special.efer = 0;
  registers = {};
  registers.rip = entry;
  registers.rbx = raw(layout::kStartInfo);
  registers.rflags = 0x2;
}

}  // namespace bough::vmm
