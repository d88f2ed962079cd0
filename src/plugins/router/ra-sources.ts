import { z } from 'zod';

/**
 * The option `raSources` of both routers: others that announce prefixes on the legs, for `holdfast router ra`. A prefix that
 * lies inside one of theirs has two sources. The resolver pair announces ULAs; an empty list where there is none.
 */
export const raSources = z
  .array(
    z.strictObject({
      name: z.string().min(1),
      prefixes: z.array(z.cidrv6()).min(1),
      /** Seconds. */
      lifetime: z.int().min(1),
    }),
  )
  .default([{ name: 'the resolver pair', prefixes: ['fc00::/7'], lifetime: 7200 }]);
