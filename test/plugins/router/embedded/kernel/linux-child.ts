/** Applies a config to the network of its own process, started inside a namespace, and prints what stands. */

import { planReapply } from '../../../../../src/plugins/router/config/reapply.ts';
import { LinuxKernel } from '../../../../../src/plugins/router/embedded/kernel/linux.ts';
import { kernelSteps } from '../../../../../src/plugins/router/embedded/kernel/steps.ts';

const [config, leg] = process.argv.slice(2);
const after = JSON.parse(config ?? '{}');
const kernel = new LinuxKernel();
await kernel.apply(kernelSteps(planReapply(undefined, after), after), new AbortController().signal);
console.log(JSON.stringify(await kernel.state(leg ?? '')));
