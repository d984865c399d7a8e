// Batch norm, and the gradients of weights and biases of all norms: sums over each channel of x (images, channels,
// pixels).
//
// A block has LANES neighboring channels (32 if pixels is 1, so that it reads contiguous elements; else 1) and one of
// gridDim.y chunks of their elements. The parts that chunks leave are joined in order by the blocks that need them.

#define BLOCK 256
#define TEAM BLOCK

#include "rows.cuh"

#define HEIGHT (BLOCK / LANES)

__device__ long long image_of(long long k, long long pixels) { return pixels == 1 ? k : (unsigned)k / (unsigned)pixels; }

struct Place {  // of a thread: its channel, and its elements in this chunk, HEIGHT apart
  long long channels, pixels, channel, begin, end;
  __device__ Place(long long images, long long channels, long long pixels) : channels(channels), pixels(pixels) {
    long long count = images * pixels, size = (count + gridDim.y - 1) / gridDim.y;
    channel = blockIdx.x * (long long)LANES + threadIdx.x % LANES;
    begin = blockIdx.y * size + threadIdx.x / LANES;
    end = has_channel() ? min((blockIdx.y + 1) * size, count) : 0;
  }
  __device__ bool has_channel() const { return channel < channels; }
  // True for the one thread of a block that writes results of its channel.
  __device__ bool is_first() const { return has_channel() && threadIdx.x < LANES; }
  __device__ long long at(long long k) const {
    long long image = image_of(k, pixels);
    return (image * channels + channel) * pixels + k - image * pixels;
  }
};

// Join the values of the threads of each channel.
template <class V>
__device__ V join_channel(V x) {
  __shared__ V all[BLOCK];
  all[threadIdx.x] = x;
  for (int half = BLOCK / 2; half >= LANES; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) all[threadIdx.x] = V::join(all[threadIdx.x], all[threadIdx.x + half]);
  }
  __syncthreads();
  return all[threadIdx.x % LANES];
}

// parts: (chunks, channels).
template <class V>
__device__ V join_parts(const V* parts, const Place& place, long long chunks) {
  V found = parts[place.channel];
  for (long long i = 1; i < chunks; i++) found = V::join(found, parts[i * place.channels + place.channel]);
  return found;
}

extern "C" __global__ void channel_moments(const T* x, ACC* parts, long long images, long long channels,
                                           long long pixels) {
  Place place(images, channels, pixels);
  Moments found = {0, 0, 0};
  for (long long k = place.begin; k < place.end; k += HEIGHT) found.add((ACC)x[place.at(k)]);
  found = join_channel(found);
  if (place.is_first()) ((Moments*)parts)[blockIdx.y * channels + place.channel] = found;
}

extern "C" __global__ void batch_norm(const T* x, const T* weight, const T* bias, const ACC* parts, T* y, T* mean,
                                      T* var, double eps, long long images, long long channels, long long pixels) {
  Place place(images, channels, pixels);
  if (!place.has_channel()) return;
  Moments found = join_parts((const Moments*)parts, place, gridDim.y);
  if (blockIdx.y == 0 && place.is_first()) {
    mean[place.channel] = T(found.mean);
    var[place.channel] = T(found.variance());
  }
  ACC scale = (ACC)weight[place.channel] / sqrt(found.variance() + (ACC)eps), shift = bias[place.channel];
  for (long long k = place.begin; k < place.end; k += HEIGHT)
    y[place.at(k)] = T(((ACC)x[place.at(k)] - found.mean) * scale + shift);
}

// With given statistics. A null pointer as weight or bias stands for one number.
extern "C" __global__ void batch_norm_inference(const T* x, const S* mean, const S* var, const W* weight, double factor,
                                                const W* bias, double offset, T* y, double eps, long long images,
                                                long long channels, long long pixels) {
  Place place(images, channels, pixels);
  if (!place.has_channel()) return;
  ACC scale = weight ? (ACC)weight[place.channel] : (ACC)factor, shift = bias ? (ACC)bias[place.channel] : (ACC)offset;
  scale /= sqrt((ACC)var[place.channel] + (ACC)eps);
  shift -= (ACC)mean[place.channel] * scale;
  for (long long k = place.begin; k < place.end; k += HEIGHT) {
    long long at = place.at(k);
    y[at] = T((ACC)x[at] * scale + shift);
  }
}

// Sums of grad, and of grad * (x - mean) / sqrt(var + eps). The statistics of an element are number
// image * rows_of_image + channel / channels_of_row.
extern "C" __global__ void channel_sums(const T* grad, const T* x, const S* mean, const S* var, ACC* parts, double eps,
                                        long long images, long long channels, long long pixels,
                                        long long rows_of_image, long long channels_of_row) {
  Place place(images, channels, pixels);
  Two sums = {0, 0};
  long long row = channels_of_row == 1 ? place.channel : place.channel / channels_of_row;
  for (long long k = place.begin; k < place.end; k += HEIGHT) {
    long long i = image_of(k, pixels) * rows_of_image + row, at = place.at(k);
    sums.first += (ACC)grad[at];
    sums.second += (ACC)grad[at] * ((ACC)x[at] - (ACC)mean[i]) / sqrt((ACC)var[i] + (ACC)eps);
  }
  sums = join_channel(sums);
  if (place.is_first()) ((Two*)parts)[blockIdx.y * channels + place.channel] = sums;
}

// The sums of all chunks, in two outputs that may be null. A grid of one chunk.
extern "C" __global__ void add_sums(const ACC* parts, W* gweight, W* gbias, long long channels, long long chunks) {
  Place place(1, channels, 1);
  if (!place.is_first()) return;
  Two sums = join_parts((const Two*)parts, place, chunks);
  if (gweight) gweight[place.channel] = W(sums.second);
  if (gbias) gbias[place.channel] = W(sums.first);
}

extern "C" __global__ void batch_norm_grad(const T* grad, const T* x, const T* weight, const T* mean, const T* var,
                                           const ACC* parts, T* gx, T* gweight, T* gbias, double eps, long long images,
                                           long long channels, long long pixels) {
  Place place(images, channels, pixels);
  if (!place.has_channel()) return;
  Two sums = join_parts((const Two*)parts, place, gridDim.y);
  if (blockIdx.y == 0 && place.is_first()) {
    gweight[place.channel] = T(sums.second);
    gbias[place.channel] = T(sums.first);
  }
  ACC inverse = 1 / sqrt((ACC)var[place.channel] + (ACC)eps), center = mean[place.channel];
  ACC count = images * pixels, scale = (ACC)weight[place.channel] * inverse;
  ACC slope = sums.second / count, offset = sums.first / count;
  for (long long k = place.begin; k < place.end; k += HEIGHT) {
    long long at = place.at(k);
    gx[at] = T(((ACC)grad[at] - ((ACC)x[at] - center) * inverse * slope - offset) * scale);
  }
}
