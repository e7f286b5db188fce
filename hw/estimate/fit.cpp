#include "hw/estimate/fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace tenon::estimate {
namespace {

using Matrix = std::vector<std::vector<double>>;

// The penalty on a coefficient, relative to what its feature weighs in the sum of squares.
constexpr double kRidge = 0.02;

// Coordinate descent: the minimum along one coefficient after the other, cut off at 0. The problem is convex, so that
// some hundred rounds suffice.
std::vector<double> solve(const Matrix& features, const std::vector<double>& values, size_t skipped) {
  constexpr int kRounds = 600;
  const size_t rows = values.size(), columns = features.front().size();
  Matrix scaled(columns, std::vector<double>(rows, 0));
  std::vector<double> norm(columns, 0), residual(rows, 1), coefficients(columns, 0);
  for (size_t r = 0; r < rows; ++r) {
    if (r == skipped) residual[r] = 0;
    for (size_t c = 0; c < columns && r != skipped; ++c) {
      scaled[c][r] = features[r][c] / values[r];
      norm[c] += scaled[c][r] * scaled[c][r];
    }
  }
  for (int round = 0; round < kRounds; ++round) {
    for (size_t c = 0; c < columns; ++c) {
      if (norm[c] == 0) continue;
      double slope = 0;
      for (size_t r = 0; r < rows; ++r) slope += scaled[c][r] * residual[r];
      const double next = std::max(0.0, (coefficients[c] + slope / norm[c]) / (1 + kRidge)),
                   change = next - coefficients[c];
      coefficients[c] = next;
      for (size_t r = 0; r < rows && change != 0; ++r) residual[r] -= change * scaled[c][r];
    }
  }
  return coefficients;
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

double Fit::operator()(const std::vector<double>& features) const { return product(coefficients, features); }

Fit fit(const Matrix& features, const std::vector<double>& values) {
  Fit result;
  if (values.empty()) return result;
  result.coefficients = solve(features, values, values.size());
  for (size_t r = 0; r < values.size(); ++r) {
    const double predicted = product(solve(features, values, r), features[r]);
    const double relative = std::abs(predicted - values[r]) / values[r];
    result.largest_error = std::max(result.largest_error, relative);
    result.mean_error += relative / static_cast<double>(values.size());
  }
  return result;
}

}  // namespace tenon::estimate
