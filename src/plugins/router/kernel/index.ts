/**
 * What the box does to a network: a reapply plan as steps (`steps.ts`), and the two drivers that carry them out, a model in
 * memory and iproute2 on one process an apply (`linux*.ts`). A driver holds no secret and decides nothing. The router's
 * `register-box.ts` chooses one and registers what follows from it; its `box.ts` is their one user at run time.
 */
export { registerAddressSets, tellAddresses } from './address-sets.ts';
export { LinuxKernel } from './linux.ts';
export { MemoryKernel } from './memory.ts';
