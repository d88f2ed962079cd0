/** What the kernel takes as a device's name, less what means something in a file's line, a path or a command. */
const DEVICE_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$/;

/** Whether a name may stand in a generated line, in a file's name and in a command to the kernel. */
export function isDeviceName(name: string): boolean {
  return DEVICE_NAME.test(name);
}

/** Whether it names a device that may be configured: the loopback is nobody's. */
export function isConfigurable(name: string): boolean {
  return isDeviceName(name) && name !== 'lo';
}
