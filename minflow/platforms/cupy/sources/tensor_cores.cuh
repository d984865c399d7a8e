// Products on tensor cores. FORMAT, SHAPE: of the instruction in PTX, such as "bf16" and "m16n8k16".
// ARCHITECTURE: the first that has it, such as 800. TENSOR_CORES is defined if this one has it.

#if defined(ON_HOST) || __CUDA_ARCH__ >= ARCHITECTURE
#define TENSOR_CORES
#endif

// d += a b for 16 rows, 8 columns and 8 words along k, each of one TF32 number or two of 16 bits. Lanes share the words:
//
//   a: rows lane / 4 (a[0], a[2]) and lane / 4 + 8; words lane % 4 (a[0], a[1]) and lane % 4 + 4
//   b: column lane / 4; words lane % 4 (b[0]) and lane % 4 + 4
//   d: rows lane / 4 (d[0], d[1]) and lane / 4 + 8; columns lane % 4 * 2 (d[0], d[2]) and lane % 4 * 2 + 1
//
// Source: NVIDIA, PTX ISA, "Matrix multiply-accumulate operation using mma instruction".
#ifdef TENSOR_CORES
__device__ unsigned word_of(const float* x) {
#ifdef ON_HOST
  return host_tf32(x[0]);
#elif __CUDA_ARCH__ >= 800
  unsigned word;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(x[0]));
  return word;
#endif
}
template <class Half>
__device__ unsigned word_of(const Half* x) {
  return x[0].bits | unsigned(x[1].bits) << 16;
}

__device__ void multiply_add(float* d, const unsigned* a, const unsigned* b) {
#ifdef ON_HOST
  host_multiply_add(d, a, b, FORMAT);
#elif __CUDA_ARCH__ < 800
#pragma unroll
  for (int half = 0; half < 2; half++)
    asm("mma.sync.aligned.m16n8k8.row.col.f32." FORMAT "." FORMAT ".f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
#else
  asm("mma.sync.aligned." SHAPE ".row.col.f32." FORMAT "." FORMAT
      ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}
#endif
