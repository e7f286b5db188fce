// Instances: the inputs of many runs of one function, from a file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/run_value_reader.h"
#include "runtime/npy.h"

namespace tenon::cli {

// An input that each instance has a value for.
struct InstanceInput {
  std::string name;
  compiler::Type type;
};

// One instance's values of the inputs, in their order, or why it has none.
struct Instance {
  std::string where;  // "trees.txt:3" or "trees.npz"
  Expected<std::vector<compiler::RunValue>> inputs;
};

// Reads instances one after the other.
//
// - FILE.npz: a tensor NAME with integers NAME.lengths has the rows of all instances, lengths[i] of them for instance
//   i, along the first axis that varies and whose size is not 1; in place of them NAME.offsets has the first row of
//   each, and the number of all; with neither, NAME has one more, leading axis, of the instances; or NAME_0, NAME_1,
//   ... are those of each.
//   The fields of a tuple have its name and their path, as NAME.0 and NAME.1.0.
// - FILE.jsonl and FILE.json: a line has the JSON of the input, or of the tuple of all inputs where there are several.
// - other files: a line has the text of this value. Empty lines and lines that begin with // are no instances.
class InstanceFile {
 public:
  static Expected<InstanceFile> open(const compiler::Context& context, const std::string& path,
                                     std::vector<InstanceInput> inputs);

  // The next instance; nothing at the end. An instance with a mistake does not end the file.
  std::optional<Instance> next(compiler::Context& context, compiler::RunValueReader& reader);

 private:
  explicit InstanceFile(std::string path, std::vector<InstanceInput> inputs)
      : path_(std::move(path)), inputs_(std::move(inputs)) {}
  Status open_archive(const compiler::Context& context);
  Status add_tensors(const compiler::Context& context, const runtime::NamedTensors& members, const std::string& name,
                     compiler::Type type);
  // The instances' rows, by NAME.lengths or NAME.offsets; nothing where the archive does not have NAME and one of
  // these.
  Expected<std::optional<std::vector<runtime::Tensor>>> unpacked(const runtime::NamedTensors& members,
                                                                 const std::string& name,
                                                                 const compiler::TensorType& type) const;

  std::string path_;
  std::vector<InstanceInput> inputs_;
  std::string text_;
  size_t at_ = 0;  // in the text
  int line_ = 0;
  // Of an archive: the tensors of each instance, for each tensor of the inputs.
  std::optional<std::vector<std::vector<runtime::Tensor>>> tensors_;
  size_t taken_ = 0;
};

}  // namespace tenon::cli
