/**
 * What the box does to a network: a reapply plan as steps (`steps.ts`), and the two drivers that carry them out, a model in
 * memory and iproute2 on one process an apply (`linux*.ts`). A driver holds no secret and decides nothing. `box.ts` puts
 * the parts together and registers what follows from them; the router's `box.ts` is their one user at run time.
 */
export { boxParts, kernelOptions, registerBox, setUpBox } from './box.ts';
export {
  type InterfaceState,
  type KernelDriver,
  KernelRefusal,
  type KernelStep,
  type Undo,
} from './driver.ts';
export { kernelSteps } from './steps.ts';
export type { Wan } from './wans.ts';
