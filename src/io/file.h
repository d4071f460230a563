// Files as a benchmark needs them: read whole or refused in one line, written whole or not at all.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fdbench::io {

// The file's bytes. Throws Error (usage): missing, a directory, unreadable, more than `max_bytes`. Pipes are
// read to their end.
std::string read_file(const std::string& path, std::size_t max_bytes = std::size_t{16} << 20);

// Writes a temporary file beside `path`, syncs it and renames it: a reader finds the old text or the new,
// never a part. A symbolic link's target is what gets replaced, keeping its mode; devices and pipes are
// written directly. Throws Error (not_written) with path and reason, and leaves no temporary file and the
// old text.
void write_atomically(const std::string& path, std::string_view text);

// Throws Error (usage) where `path` could not be written: for finding out before measuring. `flag` begins the
// message ("--json"). Neither creates nor changes the file at `path`.
void probe_writable(const std::string& path, const std::string& flag);

// Throws Error (usage) where `output`, which `flag` names, is the same file as one of `inputs`, which
// `input_flag` reads. Files that aren't there yet, and "-", are no one's input.
void refuse_overwriting(const std::string& output, const std::string& flag,
                        const std::vector<std::string>& inputs, const std::string& input_flag);

// Makes the directory `path` and its parents where they are missing. Throws Error (usage) beginning with
// `flag`.
void make_directories(const std::string& path, const std::string& flag);

// Held by whoever is going to write `path`, until it is destroyed.
class OutputLock {
 public:
  virtual ~OutputLock() = default;
};

// Throws Error (usage), beginning with `flag`, when another process or another output of this one holds the
// lock. The lock is a sibling file ".NAME.lock", gone once released, and freed by the system if the holder
// dies. Devices and pipes, and file systems without locks, have none: then it excludes nobody.
std::unique_ptr<OutputLock> lock_output(const std::string& path, const std::string& flag);

}  // namespace fdbench::io
