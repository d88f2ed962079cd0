// Node makes an object for each `process.nextTick`, and a call of the gateway makes seven. V8 learns their shape and
// writes them fast, until a collection of all garbage finds none alive: then it forgets the shape and takes a slow way
// for as long as the process lives. One that is kept, before there is any garbage, keeps the shape.
import { executionAsyncResource } from 'node:async_hooks';

/** @type {object | undefined} */
export let kept;
process.nextTick(() => {
  kept = executionAsyncResource();
});
