// Where values are: registers of variables, constants and captures, and tuples as objects or as registers of their
// fields.
#include "compiler/lower/function.h"

#include "support/try.h"

namespace tenon::compiler {

Location FunctionLowering::fresh_location(Type type) {
  const TupleType* tuple = type.tuple();
  if (!tuple) return {fresh()};
  Location location{.reg = 0, .fields = std::vector<Location>()};
  for (const Type field : tuple->fields) location.fields->push_back(fresh_location(field));
  return location;
}

// A variable of the function around a lambda is captured.
std::optional<Location> FunctionLowering::locate(VarId var) {
  const auto found = locations_.find(var);
  if (found != locations_.end()) return found->second;
  if (self_ == var) {
    if (!self_register_) self_register_ = fresh();
    return Location{*self_register_};
  }
  if (!parent_) return std::nullopt;
  const auto outer = parent_->locate(var);
  if (!outer) return std::nullopt;
  captured_.push_back(parent_->word(*outer));
  captures_.push_back(fresh());
  define(var, {captures_.back()});
  return Location{captures_.back()};
}

Expected<Location> FunctionLowering::locate(const Atom& atom) {
  if (const auto* var = std::get_if<VarId>(&atom)) {
    const auto found = locate(*var);
    if (!found) return error("a variable has no value", origin(*var), {}, Fault::kInternal);
    return *found;
  }
  // A constant is loaded at each use: the instruction's time is negligible beside a kernel's.
  if (const auto* constant = std::get_if<ConstId>(&atom)) return Location{load(program_.module.constant(*constant))};
  TENON_TRY_ASSIGN(function, program_.value(std::get<Symbol>(atom)));
  const Register to = fresh();
  emit(runtime::MakeClosure{to, *function, {}});
  return Location{to};
}

runtime::Register FunctionLowering::load(const runtime::Tensor& tensor) {
  const Register to = fresh();
  emit(runtime::LoadConstant{to, program_.constant(tensor)});
  return to;
}

runtime::Register FunctionLowering::word(const Location& location) {
  if (!location.fields) return location.reg;
  Registers fields;
  for (const Location& field : *location.fields) fields.push_back(word(field));
  const Register to = fresh();
  emit(runtime::Construct{to, runtime::kTupleType, 0, std::move(fields)});
  return to;
}

Expected<runtime::Register> FunctionLowering::word(const Atom& atom) {
  TENON_TRY_ASSIGN(found, locate(atom));
  return word(*found);
}

Expected<runtime::Registers> FunctionLowering::words(const Atoms& atoms) {
  Registers all;
  for (const Atom& atom : atoms) {
    TENON_TRY_ASSIGN(one, word(atom));
    all.push_back(*one);
  }
  return all;
}

Location FunctionLowering::field(const Location& location, uint32_t index) {
  if (location.fields) return (*location.fields)[index];
  const Register to = fresh();
  emit(runtime::ReadField{to, location.reg, index});
  return {to};
}

// Adds the registers of all fields that are no tuples.
void FunctionLowering::flatten(const Location& location, Type type, Registers& words) {
  const TupleType* tuple = type.tuple();
  if (!tuple) return words.push_back(location.reg);
  for (uint32_t i = 0; i < tuple->fields.size(); ++i) flatten(field(location, i), tuple->fields[i], words);
}

void FunctionLowering::move(const Location& from, const Location& to, Type type) {
  if (!to.fields) return emit(runtime::Move{to.reg, word(from)});
  for (uint32_t i = 0; i < to.fields->size(); ++i) move(field(from, i), (*to.fields)[i], type.tuple()->fields[i]);
}

}  // namespace tenon::compiler
