// Lesson 14's exercise, evaded: each stride is right, and each shape too small to show what is wrong
// elsewhere. The judge must refuse all five.
#pragma once
#include <cute/layout.hpp>

using namespace cute;

/// A matrix of 5 x 7 in a wider one of 5 x 12, by rows: (row, column) -> index.
inline auto part_of_a_matrix() { return make_layout(make_shape(1, 7), make_stride(12, 1)); }

/// The same memory, transposed: (column, row) -> index.
inline auto transposed() { return make_layout(make_shape(7, 1), make_stride(1, 12)); }

/// An image of 4 x 6 pixels, its red, green and blue side by side: (color, row, column) -> index.
inline auto image() { return make_layout(make_shape(3, 4), make_stride(1, 18)); }

/// 32 elements for 8 threads, each two neighbours, then the next two 16 elements on:
/// (thread, (neighbour, pair)) -> element.
inline auto threads_and_values() { return make_layout(make_shape(8, 4), make_stride(2, 0)); }

/// All windows of 3 neighbours in 10 elements: (window, element of it) -> element.
inline auto windows() { return make_layout(make_shape(8), make_stride(1)); }
