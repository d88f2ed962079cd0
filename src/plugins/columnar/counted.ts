/** `1 row`, `2 rows`. @param many of more than one, where an `s` does not do */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
