// The selection among copies of an outlined function by the sizes of a run. Internal to make_buckets().
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/partition/outline.h"

namespace tenon::compiler {

class SizeDispatch {
 public:
  // `part`: bindings of `caller`, which is not changed. Dims of its parameters that are expressions become variables
  // where nothing else depends on what they consist of: rows [N * T, K] become rows [R, K].
  SizeDispatch(Context& context, Module& module, Function& caller, Outlined part);

  // Adds the function and its copy for each bucket to the module. `rows`: row i of each result depends on row i of each
  // operand alone. False where no bucket decides all sizes of the operands; the module is as before then.
  bool add_copies(std::string_view target, std::span<const DimValues> buckets, bool rows);
  // The bindings that replace those of the part, with its results in their variables: a selection by the sizes, or,
  // where the copies pad and compute `any` number of rows, a call of a function that calls several of them. An error
  // where the sizes of the results do not follow from those of the operands.
  Expected<std::vector<Binding>> bindings(bool any = false);

  // Undoes add_copies(), where the part stays as it is; bindings() does so before its error.
  void remove_copies();

  Symbol name() const { return name_; }
  bool pads() const { return pads_; }
  std::vector<std::string> sizes() const;  // of each copy

 private:
  struct Copy {
    Symbol name{};
    std::vector<int64_t> sizes;  // by unknown size
  };
  // An unknown size of the function, and what it is in the caller.
  struct Size {
    Symbol name{};
    Dim value{};
  };

  void name_expressions();
  bool are_rows() const;
  bool add_copy(const DimValues& bucket);
  Expected<Atom> choose(Builder& builder, size_t copy);
  Expected<Atom> condition(Builder& builder, const Copy& copy);
  // Operands of a part, and the types of its results, in the function that a builder makes.
  struct Operands {
    Atoms args;
    std::vector<Type> types, results;
  };
  Operands in_caller() const;
  Expected<Atom> call(Builder& builder, const Copy& copy, const Operands& operands);
  Expected<Atom> call_function(Builder& builder, Symbol function, const Operands& operands);
  // Makes a function of any number of rows, which calls a copy where there is one of so many, itself for two halves of
  // more, and pads the last rows up to a multiple of the smallest copy's. Its name.
  Expected<Symbol> make_function_of_rows();
  Expected<Atom> split(Builder& builder, Symbol self, const Operands& operands, size_t num_copies);
  Expected<Atom> halves(Builder& builder, Symbol self, const Operands& operands, const Copy& copy);
  Expected<Atom> padded(Builder& builder, Atom arg, Type type, const Copy& copy);
  Expected<Atom> rows(Builder& builder, Atom tensor, Type type, Dim begin, Dim end);

  Context& context_;
  Module& module_;
  Function& caller_;
  Outlined part_;
  Symbol name_{};
  std::vector<Size> sizes_;
  std::vector<Copy> copies_;
  bool pads_ = false;
};

}  // namespace tenon::compiler
