// CuTe's layouts, printed: no kernel, no GPU. Lesson 14 walks through them, and says how g++ builds this.
//   build/cute/layouts function|strides|compose|tiles|threads|edge
#include <cstdio>
#include <cstring>
#include <cute/tensor.hpp>

using namespace cute;

/// "name  layout" as a line.
template <class What>
void line(const char* name, const What& what) {
  std::printf("%-28s", name);
  print(what);
  std::printf("\n");
}

void function() {
  // [function]
  const auto rows = make_layout(make_shape(3, 4), make_stride(4, 1));
  print_layout(rows);
  line("rows", rows);
  line("rows(1, 2)", rows(1, 2));
  line("rows(7)", rows(7));
  line("size, cosize", make_tuple(size(rows), cosize(rows)));
  // [/function]
}

void strides() {
  // [strides]
  const auto shape = make_shape(3, 4);
  line("rows", make_layout(shape, make_stride(4, 1)));
  line("columns", make_layout(shape, make_stride(1, 3)));
  line("rows 8 apart", make_layout(shape, make_stride(8, 1)));
  line("every second element", make_layout(shape, make_stride(16, 2)));
  line("one row for all", make_layout(shape, make_stride(0, 1)));
  line("known when compiled", make_layout(Shape<_3, _4>{}, LayoutRight{}));
  line("tiles of 3 x 2", make_layout(make_shape(3, make_shape(2, 2)), make_stride(2, make_stride(1, 6))));
  // [/strides]
}

void compose() {
  // [compose]
  const Layout<_8, _3> memory;                             // 8 elements, 3 apart
  const Layout<Shape<_4, _2>, Stride<_2, _1>> neighbours;  // (thread, value) -> element
  const Layout<Shape<_4, _2>, Stride<_1, _4>> apart;
  print_layout(neighbours);
  line("(thread, value) -> element", neighbours);
  line("element -> index", memory);
  line("(thread, value) -> index", composition(memory, neighbours));
  line("the same, values apart", composition(memory, apart));
  // [/compose]
}

void tiles() {
  // [tiles]
  const auto matrix = make_layout(make_shape(5, 10), make_stride(16, _1{}));
  line("matrix", matrix);
  const auto tiled = zipped_divide(matrix, Shape<_2, _4>{});
  line("((tile), (which tile))", tiled);
  line("a tile", layout<0>(tiled));
  line("tile (1, 2) begins at", tiled(0, make_coord(1, 2)));
  // [/tiles]
}

void threads() {
  // [threads]
  const Layout<Shape<_4, _8>, Stride<_8, _1>> tile;
  const Layout<Shape<_2, _4>, Stride<_4, _1>> team;  // 8 threads, as they stand on the tile
  const auto copies =
      make_tiled_copy(Copy_Atom<UniversalCopy<std::uint64_t>, float>{}, team, Layout<Shape<_1, _2>>{});
  for (const int thread : {0, 1, 4}) {
    std::printf("thread %d\n", thread);
    line("  single elements", local_partition(make_tensor(counting_iterator<int>(0), tile), team, thread));
    line("  vectors of 2",
         copies.get_slice(thread).partition_S(make_tensor(counting_iterator<int>(0), tile)));
  }
  // [/threads]
}

void edge() {
  // [edge]
  const auto shape = make_shape(5, 10);
  const auto coordinates = local_tile(make_identity_tensor(shape), Shape<_2, _4>{}, make_coord(2, 2));
  for (int row = 0; row < size<0>(coordinates); ++row) {
    for (int column = 0; column < size<1>(coordinates); ++column) {
      print(coordinates(row, column));
      std::printf(elem_less(coordinates(row, column), shape) ? " copied  " : " past    ");
    }
    std::printf("\n");
  }
  // [/edge]
}

int main(int count, char** arguments) {
  const struct {
    const char* name;
    void (*show)();
  } all[] = {{"function", function}, {"strides", strides}, {"compose", compose},
             {"tiles", tiles},       {"threads", threads}, {"edge", edge}};
  for (const auto& [name, show] : all)
    if (count == 2 && std::strcmp(arguments[1], name) == 0) {
      show();
      return 0;
    }
  std::fprintf(stderr, "layouts: give one name: function, strides, compose, tiles, threads or edge\n");
  return 2;
}
