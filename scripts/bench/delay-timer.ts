/** The proxy's timer thread: sleeps for the milliseconds it is told, and says so. */
declare const self: Worker;

const never = new Int32Array(new SharedArrayBuffer(4));

self.onmessage = ({ data }: MessageEvent<number>) => {
  if (data > 0) Atomics.wait(never, 0, 0, data);
  self.postMessage(null);
};
