// The types of a random module: the defined ones, and those built from them.
#pragma once

#include <map>
#include <vector>

#include "compiler/fuzz/generator.h"
#include "support/random.h"

namespace tenon::compiler::fuzz {

// The values of the variables of a signature, as far as arguments determine them.
struct Substitution {
  std::map<Symbol, Dim> dims;
  std::map<Symbol, Type> types;
};
// Whether `type` is an instance of `pattern`, in which `dims` and `types` are the variables; records their values.
bool match(Context& context, const std::vector<Symbol>& dims, const std::vector<Symbol>& types, Type pattern, Type type,
           Substitution& substitution);

// Every variable in a dim or type, in order of appearance.
void variables(Dim dim, std::vector<Symbol>& found);
void variables(Type type, std::vector<Symbol>& dims, std::vector<Symbol>& types);

bool is_float(DType dtype);
inline bool is_scalar(const TensorType& tensor) { return tensor.dims.empty(); }

// Tensors are small, but in some modules an axis is longer than a vector with its tail.
inline constexpr int64_t kLargestSize = 36;

class Types {
 public:
  Types(Context& context, Random& random, Module& module, const Options& options);

  // Lists, trees and others, some of them random.
  void define();

  // A random one. `data`: without functions and references. `erased`: sizes may be `?`. `dims` and `types` may appear
  // in it.
  struct Wish {
    int depth = 2;
    bool data = false;
    bool erased = false;
    std::vector<Symbol> dims = {}, types = {};
  };
  Type any(const Wish& wish);
  Type tensor(const std::vector<Symbol>& dims = {});
  Type tensor(DType dtype);
  // With `?` for some sizes, and with a constant for each `?`.
  Type erase_some(Type type);
  Type with_sizes(Type type);
  Dim dim(const std::vector<Symbol>& variables);
  DType dtype();
  DType floats() const { return floats_; }
  int64_t size();
  Type scalar(DType dtype) { return context_.tensor(Dims{}, dtype); }

  bool is_data(Type type) const;  // holds no function and no reference
  // The fields of a constructor of that type.
  std::vector<Type> fields(const AdtType& adt, const Constructor& constructor) const;
  // The constructor of the smallest values.
  const Constructor& smallest(const AdtType& adt) const;

  // Values that are small and exact in f32; the ends of an integer's range now and then.
  runtime::Tensor constant(DType dtype, const runtime::Shape& shape);

 private:
  void define(std::string_view name, const std::vector<std::string_view>& params,
              std::vector<std::pair<std::string, std::vector<Type>>> constructors);
  void define_random(int index);
  Type of(std::string_view name, std::vector<Type> args) {
    return context_.adt(context_.symbol(name), std::move(args));
  }
  bool is_data(Type type, std::vector<Symbol>& visited) const;

  Context& context_;
  Random& random_;
  Module& module_;
  bool derivable_ = false;
  DType floats_;
  std::vector<DType> dtypes_;  // with repetitions, as weights
  std::vector<int64_t> sizes_;
  std::vector<Symbol> defined_;  // in the order of definition
};

}  // namespace tenon::compiler::fuzz
