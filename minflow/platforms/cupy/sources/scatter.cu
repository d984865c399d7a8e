// Add rows at positions that may repeat, in a fixed order: positions are sorted, and each run of equal ones is summed.
//
// x: (outer, n, inner).  src: (outer, m, inner).  index: m rows of x.  order: sorts index, and is stable.  RUN sorted
// positions are a chunk: a thread sums one column of it. A run that is in several chunks has a part in each.
// heads, tails: (outer, chunks, inner), the part of a chunk's first run, if it begins before, and of its last one, if
// it begins in the chunk and ends after it.

#include "common.cuh"

struct Rows {
  const INDEX* index;
  const long long* order;
  long long m;
  __device__ long long at(long long i) const { return index[order[i]]; }
  __device__ bool begins(long long i) const { return i == 0 || at(i - 1) != at(i); }  // a run
  __device__ bool ends(long long i) const { return i + 1 == m || at(i + 1) != at(i); }
};

static __device__ void add(T* x, ACC sum) { *x = T((ACC)*x + sum); }

extern "C" __global__ void add_runs(T* x, const T* src, const INDEX* index, const long long* order, ACC* heads,
                                    ACC* tails, long long outer, long long n, long long m, long long inner) {
  long long t = (long long)blockIdx.x * blockDim.x + threadIdx.x, chunks = (m + RUN - 1) / RUN;
  if (t >= outer * chunks * inner) return;
  long long column = t % inner, chunk = t / inner % chunks, o = t / inner / chunks;
  long long i = chunk * RUN, end = i + RUN < m ? i + RUN : m;
  Rows rows = {index, order, m};
  bool inside = rows.begins(i);  // the run begins in this chunk
  ACC sum = 0;
  for (; i < end; i++) {
    sum += (ACC)src[(o * m + order[i]) * inner + column];
    if (rows.ends(i)) {
      if (inside) add(x + (o * n + rows.at(i)) * inner + column, sum);
      else heads[t] = sum;
      sum = 0, inside = true;
    }
  }
  if (!rows.ends(end - 1)) (inside ? tails : heads)[t] = sum;
}

// Add the runs of several chunks: a thread of the chunk in which a run begins sums its parts.
extern "C" __global__ void add_long_runs(T* x, const INDEX* index, const long long* order, const ACC* heads,
                                         const ACC* tails, long long outer, long long n, long long m, long long inner) {
  long long t = (long long)blockIdx.x * blockDim.x + threadIdx.x, chunks = (m + RUN - 1) / RUN;
  if (t >= outer * chunks * inner) return;
  long long column = t % inner, chunk = t / inner % chunks, o = t / inner / chunks;
  long long last = (chunk + 1) * RUN - 1;
  Rows rows = {index, order, m};
  if (last >= m || rows.ends(last)) return;
  long long row = rows.at(last);
  if (chunk && rows.at(chunk * RUN) == row && !rows.begins(chunk * RUN)) return;  // it begins in an earlier chunk
  ACC sum = tails[t];
  bool more = true;
  for (long long k = 1; more; k++) {
    sum += heads[t + k * inner];
    last += RUN;
    more = last < m && rows.at(last) == row && !rows.ends(last);
  }
  add(x + (o * n + row) * inner + column, sum);
}
