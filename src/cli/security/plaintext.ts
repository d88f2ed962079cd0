import type { CommandConfig } from '../../core/host/plugin/command.ts';
import type { CheckDefinition, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import { isObject } from '../../core/kernel/json.ts';

/** What `holdfast doctor security` looks at in the configuration: where plaintext is allowed by `insecure: true`. */
export function plaintextCheck(config: () => Promise<CommandConfig>): CheckDefinition {
  return { name: 'security.plaintext', run: async () => judgePlaintext((await config()).plugins) };
}

/** @param plugins with the options that they are started with */
export function judgePlaintext(plugins: CommandConfig['plugins']): CheckResult {
  const lookedAt = 'the options of all plugins';
  const allowed = plugins.flatMap(({ definition: { name }, options }) => insecureIn(options, name));
  if (allowed.length === 0) {
    const found = 'none allows plaintext beyond this machine, neither for a surface nor for a credential';
    return { state: 'ok', lookedAt, found };
  }
  return {
    state: 'warn',
    lookedAt,
    found: `plaintext beyond this machine is allowed by ${allowed.join(', ')}`,
    remedy:
      'Give the surface a certificate (`tls`), or the server an https address, and take `insecure` out.',
  };
}

/** The paths of `insecure: true` in options. */
function insecureIn(value: unknown, path: string): string[] {
  if (Array.isArray(value)) return value.flatMap((each, index) => insecureIn(each, `${path}[${index}]`));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, each]) =>
    name === 'insecure' && each === true ? [`${path}.insecure`] : insecureIn(each, `${path}.${name}`),
  );
}
