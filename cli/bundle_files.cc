// SPDX-License-Identifier: Apache-2.0
// What a bundle is of: the libraries that the programs load here, where they look for them there, and
// licences.
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <sstream>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mapped_file.h"
#include "cli/bundle.h"
#include "sweeps/paper_sweeps.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::string_view kProgramsPath = "$ORIGIN/../lib", kLibrariesPath = "$ORIGIN";
constexpr auto kAnswersWithin = 60s;  // for a program to say its version

/// The bytes of an ELF file; whatever lies outside them is an error that names the file.
class Elf {
 public:
  explicit Elf(const fs::path& file) : file_{file} {
    const auto header = read<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB)
      fail("expected a program or a library (ELF, 64 bits, little-endian)");
    machine_ = header.e_machine;
    for (unsigned i = 0; i < header.e_phnum; ++i)
      segments_.push_back(read<Elf64_Phdr>(header.e_phoff + std::uint64_t{i} * sizeof(Elf64_Phdr)));
  }

  unsigned machine() const { return machine_; }
  const std::vector<Elf64_Phdr>& segments() const { return segments_; }

  template <typename T>
  T read(std::uint64_t offset) const {
    if (offset > bytes().size() || bytes().size() - offset < sizeof(T)) fail("it is cut off");
    T value;
    std::memcpy(&value, bytes().data() + offset, sizeof(T));
    return value;
  }
  std::string text(std::uint64_t offset) const {
    if (offset >= bytes().size()) fail("it is cut off");
    const auto end = bytes().find('\0', offset);
    if (end == std::string_view::npos) fail("it is cut off");
    return std::string{bytes().substr(offset, end - offset)};
  }
  /// Where an address of the loaded file lies in it.
  std::uint64_t offset_of(std::uint64_t address) const {
    for (const Elf64_Phdr& segment : segments_)
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
          address - segment.p_vaddr < segment.p_filesz)
        return address - segment.p_vaddr + segment.p_offset;
    fail("an address lies outside it");
  }
  [[noreturn]] void fail(const char* what) const {
    throw Error{Code::kInvalidArgument, fmt::format("{}: {}", file_.path().string(), what)};
  }

 private:
  std::string_view bytes() const { return file_.bytes(); }
  MappedFile file_;
  unsigned machine_ = 0;
  std::vector<Elf64_Phdr> segments_;
};

std::string machine_name(unsigned machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86_64";
    case EM_AARCH64:
      return "aarch64";
    default:
      return fmt::format("machine-{}", machine);
  }
}

/// "2.9" before "2.36".
bool older(const std::string& a, const std::string& b) {
  const auto numbers = [](const std::string& version) {
    std::array<int, 3> parts{};
    std::istringstream text{version};
    std::string part;
    for (int& number : parts)
      if (std::getline(text, part, '.')) number = std::atoi(part.c_str());
    return parts;
  };
  return numbers(a) < numbers(b);
}

/// Of the versions that a file asks of others, the newest of glibc.
std::string newest_glibc(const Elf& elf, std::uint64_t strings, std::uint64_t at, std::uint64_t count) {
  std::string newest;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto of_file = elf.read<Elf64_Verneed>(at);
    std::uint64_t version_at = at + of_file.vn_aux;
    for (unsigned j = 0; j < of_file.vn_cnt; ++j) {
      const auto version = elf.read<Elf64_Vernaux>(version_at);
      if (const std::string name = elf.text(strings + version.vna_name); name.starts_with("GLIBC_2."))
        if (const std::string number = name.substr(6); older(newest, number)) newest = number;
      if (version.vna_next == 0) break;
      version_at += version.vna_next;
    }
    if (of_file.vn_next == 0) break;
    at += of_file.vn_next;
  }
  return newest;
}

/// What every machine has for itself, in a version that belongs to its kernel, its programs or its GPU's
/// driver.
bool of_the_machine(std::string_view library) {
  static constexpr std::array<std::string_view, 14> kGlibc{"libc",
                                                           "libm",
                                                           "libmvec",
                                                           "libpthread",
                                                           "libdl",
                                                           "librt",
                                                           "libutil",
                                                           "libanl",
                                                           "libresolv",
                                                           "libnsl",
                                                           "libBrokenLocale",
                                                           "libthread_db",
                                                           "libc_malloc_debug",
                                                           "libnss_files"};
  const auto stem = library.substr(0, library.find(".so"));
  return stem.starts_with("ld-linux") || stem.starts_with("linux-vdso") || stem.starts_with("linux-gate") ||
         stem.starts_with("libnss_") || std::ranges::find(kGlibc, stem) != kGlibc.end() ||
         stem == "libcuda" || stem.starts_with("libnvidia-");
}

std::string without_newline(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

using Libraries =
    std::map<std::string, fs::path>;  ///< where each name is, as the loader of this machine finds it

/// Adds what a program loads at its start, as the loader says it: `name => /path (0x…)`.
void add_loaded(Libraries& libraries, const fs::path& program) {
  std::istringstream said{
      run_program({"env", "LD_TRACE_LOADED_OBJECTS=1", program.string()}, "", kAnswersWithin)};
  for (std::string line; std::getline(said, line);) {
    const auto arrow = line.find(" => ");
    const auto first = line.find_first_not_of(" \t");
    if (first == std::string::npos) continue;
    const std::string name = line.substr(first, line.find_first_of(" \t", first) - first);
    if (of_the_machine(fs::path{name}.filename().string())) continue;
    const auto end = line.rfind(" (0x");
    if (arrow == std::string::npos || end == std::string::npos || end < arrow + 4)
      throw Error{Code::kFailedPrecondition,
                  fmt::format("{}: loads {}, which this machine does not find; expected all of its libraries",
                              program.string(), name)};
    const fs::path file = fs::canonical(line.substr(arrow + 4, end - arrow - 4));
    const auto [known, added] = libraries.emplace(name, file);
    if (!added && known->second != file)
      throw Error{Code::kFailedPrecondition,
                  fmt::format("{}: the programs load two of them, {} and {}; build both programs alike", name,
                              known->second.string(), file.string())};
  }
}

/// What the libraries of a CUDA wheel open while they run (cuDNN its engines, NVRTC its built-in functions)
/// is in no list of theirs: everything in the folders of NVIDIA's wheels in which one of them lies comes
/// along.
void add_opened_later(Libraries& libraries) {
  std::set<fs::path> folders;
  for (const auto& [name, file] : libraries)
    if (const fs::path folder = file.parent_path();
        std::ranges::find(folder, fs::path{"nvidia"}) != folder.end())
      folders.insert(folder);
  for (const fs::path& folder : folders)
    for (const auto& entry : fs::directory_iterator{folder}) {
      const std::string name = entry.path().filename().string();
      if (entry.is_regular_file() && name.find(".so") != std::string::npos && !of_the_machine(name))
        libraries.emplace(name, fs::canonical(entry.path()));
    }
}

/// The changes by which a program looks for its libraries in ../lib, a library beside itself: as an RPATH,
/// which goes before LD_LIBRARY_PATH, and a program's holds for all that it loads (Debian's libraries do not
/// say where others are).
std::vector<Change> relocation(const fs::path& file, const LinkedFile& linked, bool program) {
  const std::string_view wanted = program ? kProgramsPath : kLibrariesPath;
  if (linked.search_path_at == 0 && !program) return {};
  if (linked.search_path.size() < wanted.size())
    throw Error{
        Code::kFailedPrecondition,
        fmt::format("{}: has no room for where its libraries will be ({}); use the program that 'make "
                    "install' writes",
                    file.string(), wanted)};
  std::vector<Change> changes;
  if (linked.search_path != wanted) {
    std::string bytes{wanted};
    bytes.resize(linked.search_path.size(), '\0');
    changes.push_back({linked.search_path_at, std::move(bytes)});
  }
  const Elf64_Sxword tag = DT_RPATH;
  changes.push_back({linked.search_tag_at, {reinterpret_cast<const char*>(&tag), sizeof(tag)}});
  return changes;
}

/// Adds the files of a folder, or one file, under `place`.
void add_text(std::vector<BundledFile>& files, const std::string& place, const fs::path& source) {
  std::error_code unreadable;
  if (fs::is_regular_file(source, unreadable)) files.push_back({.path = place, .source = source});
  if (!fs::is_directory(source, unreadable)) return;
  for (const auto& entry : fs::recursive_directory_iterator{source, unreadable})
    if (entry.is_regular_file())
      files.push_back(
          {.path = place + "/" + fs::relative(entry.path(), source).string(), .source = entry.path()});
}

/// Licences of Debian's packages and of PyTorch's and NVIDIA's wheels. Returns: libraries that are of
/// neither.
Libraries add_licences(std::vector<BundledFile>& files, const Libraries& libraries) {
  Libraries unknown;
  std::set<std::string> packages;
  std::set<fs::path> wheels;  // site-packages
  for (const auto& [name, file] : libraries) {
    const auto packaged = std::ranges::find(file, fs::path{"site-packages"});
    if (packaged != file.end()) {
      fs::path site;
      for (auto part = file.begin(); part != packaged; ++part) site /= *part;
      wheels.insert(site / "site-packages");
      continue;
    }
    std::string owner;
    // a file of /usr/lib may be known to dpkg by the name that it has in /lib
    for (const std::string& path :
         {file.string(), file.string().substr(file.string().starts_with("/usr") ? 4 : 0)})
      try {
        const std::string said = run_program({"dpkg-query", "--search", path}, "", kAnswersWithin);
        owner = said.substr(0, said.find(':'));
        break;
      } catch (const Error&) {  // no Debian, or no package has it
      }
    if (owner.empty() || !fs::exists("/usr/share/doc/" + owner + "/copyright"))
      unknown.emplace(name, file);
    else
      packages.insert(owner);
  }
  for (const std::string& package : packages)
    add_text(files, "licences/" + package, fs::canonical("/usr/share/doc/" + package + "/copyright"));
  for (const fs::path& site : wheels)
    for (const auto& entry : fs::directory_iterator{site}) {
      const std::string name = entry.path().filename().string();
      const bool used = name.starts_with("torch-") || name.starts_with("nvidia_");
      if (!used || !name.ends_with(".dist-info")) continue;
      const std::string wheel = name.substr(0, name.find('-'));
      add_text(files, "licences/" + wheel, entry.path() / "licenses");
      add_text(files, "licences/" + wheel + ".txt", entry.path() / "License.txt");
    }
  return unknown;
}

/// LICENSE and NOTICE of this program: of its installation, or of the sources that it was built in. Returns:
/// whether the licences of the libraries that were installed with it came along.
bool add_own_licence(std::vector<BundledFile>& files, fs::path folder) {
  constexpr int kDeepest = 5;
  for (int i = 0; i < kDeepest && folder.has_relative_path(); ++i, folder = folder.parent_path())
    for (const fs::path& place : {folder / "share/doc/ablate", folder})
      if (fs::exists(place / "LICENSE") && fs::exists(place / "NOTICE")) {
        add_text(files, "LICENSE", place / "LICENSE");
        add_text(files, "NOTICE", place / "NOTICE");
        add_text(files, "licences", place / "licences");
        return fs::is_directory(place / "licences");
      }
  return false;
}

std::string cuda_of(const Libraries& libraries) {
  if (!libraries.contains("libtorch_cuda.so")) return "cpu";
  for (const auto& [name, file] : libraries)
    if (constexpr std::string_view runtime = "libcudart.so."; name.starts_with(runtime))
      return "cuda" + name.substr(runtime.size(), name.find('.', runtime.size()) - runtime.size());
  return "cuda";
}

}  // namespace

LinkedFile read_linked_file(const fs::path& file) {
  const Elf elf{file};
  LinkedFile linked{.machine = machine_name(elf.machine())};
  const auto dynamic =
      std::ranges::find(elf.segments(), static_cast<Elf64_Word>(PT_DYNAMIC), &Elf64_Phdr::p_type);
  if (dynamic == elf.segments().end()) return linked;  // static
  std::map<Elf64_Sxword, std::uint64_t> values;
  std::vector<std::uint64_t> needed;
  for (std::uint64_t at = dynamic->p_offset; at + sizeof(Elf64_Dyn) <= dynamic->p_offset + dynamic->p_filesz;
       at += sizeof(Elf64_Dyn)) {
    const auto entry = elf.read<Elf64_Dyn>(at);
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED)
      needed.push_back(entry.d_un.d_val);
    else
      values[entry.d_tag] = entry.d_un.d_val;
    if (entry.d_tag == DT_RUNPATH || (entry.d_tag == DT_RPATH && linked.search_tag_at == 0))
      linked.search_tag_at = at;
  }
  if (!values.contains(DT_STRTAB)) elf.fail("it has no names");
  const std::uint64_t strings = elf.offset_of(values.at(DT_STRTAB));
  for (const std::uint64_t name : needed) linked.needed.push_back(elf.text(strings + name));
  for (const auto tag : {DT_RUNPATH, DT_RPATH})
    if (values.contains(tag) && linked.search_path_at == 0) {
      linked.search_path_at = strings + values.at(tag);
      linked.search_path = elf.text(linked.search_path_at);
    }
  if (values.contains(DT_VERNEED))
    linked.glibc = newest_glibc(elf, strings, elf.offset_of(values.at(DT_VERNEED)), values[DT_VERNEEDNUM]);
  return linked;
}

std::vector<std::string> programs_of(BundleOf of) {
  switch (of) {
    case BundleOf::kWorker:
      return {"ablate-worker"};
    case BundleOf::kCli:
      return {"ablate"};
    case BundleOf::kAll:
      return {"ablate", "ablate-scheduler", "ablate-worker"};
  }
  return {};
}

Bundle plan_bundle(BundleOf of, const fs::path& folder, const fs::path& trainer) {
  Bundle bundle;
  Libraries libraries;
  const auto add = [&](const std::string& path, const fs::path& source, bool program) {
    const LinkedFile linked = read_linked_file(source);
    if (!bundle.machine.empty() && linked.machine != bundle.machine)
      throw Error{Code::kFailedPrecondition, fmt::format("{}: is for {}, the others for {}", source.string(),
                                                         linked.machine, bundle.machine)};
    bundle.machine = linked.machine;
    if (older(bundle.glibc, linked.glibc)) bundle.glibc = linked.glibc;
    bundle.files.push_back(
        {.path = path, .source = source, .changes = relocation(source, linked, program), .executable = true});
    return linked;
  };
  std::vector<std::pair<std::string, LinkedFile>> linked_files;
  std::vector<std::pair<std::string, fs::path>> programs;
  for (const std::string& name : programs_of(of)) programs.emplace_back("bin/" + name, folder / name);
  if (!trainer.empty()) programs.emplace_back("bin/ablate-trainer", trainer);
  for (const auto& [path, program] : programs) {
    add_loaded(libraries, program);
    linked_files.emplace_back(path, add(path, program, true));
  }
  const Libraries loaded = libraries;
  add_opened_later(libraries);
  for (const auto& [name, file] : libraries) {
    LinkedFile linked = add("lib/" + name, file, false);
    // what is opened later may lack something, as it does here: what serves network cards that few have, say
    if (loaded.contains(name)) linked_files.emplace_back(name, std::move(linked));
  }
  for (const auto& [name, linked] : linked_files)
    for (const std::string& needed : linked.needed)
      if (!libraries.contains(needed) && !of_the_machine(needed))
        throw Error{Code::kFailedPrecondition,
                    fmt::format("{} needs {}, which this machine does not find", name, needed)};
  bundle.version =
      without_newline(run_program({programs.front().second.string(), "--version"}, "", kAnswersWithin));
  bundle.version.erase(0, bundle.version.rfind(' ') + 1);  // "ablate 0.1.0"
  if (!trainer.empty())
    bundle.trainer = without_newline(run_program({trainer.string(), "--version"}, "", kAnswersWithin));
  bundle.device = of == BundleOf::kCli ? "none" : trainer.empty() ? "commands" : cuda_of(libraries);
  bundle.name = fmt::format("ablate{}-{}-{}", of == BundleOf::kAll ? "" : fmt::format("-{}", name_of(of)),
                            bundle.version, bundle.machine);
  if (of != BundleOf::kCli) bundle.name += "-" + bundle.device;
  if (const auto papers = sweeps::papers_folder();
      papers && of != BundleOf::kWorker)  // whose names stand for files
    add_text(bundle.files, "share/ablate/sweeps/papers", *papers);
  const bool brought = add_own_licence(bundle.files, folder);
  const std::string installed = folder.parent_path().string() + "/";
  for (const auto& [name, file] : add_licences(bundle.files, libraries))
    if (!brought || !file.string().starts_with(installed)) bundle.unlicensed.push_back(name);
  std::ranges::sort(bundle.files, {}, &BundledFile::path);
  const auto again =
      std::ranges::unique(bundle.files, {}, &BundledFile::path);  // a licence that both places have
  bundle.files.erase(again.begin(), again.end());
  return bundle;
}

}  // namespace abl::cli
