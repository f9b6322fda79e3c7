/**
 * Takes SIGHUP before anything else of the program is loaded: its default action
 * ends the process, and a service manager may send it at any time. One that
 * comes before the service runs asks for nothing: all files are yet to be read.
 */
let reload = (): void => {};
process.on("SIGHUP", () => reload());

export function onReload(listener: () => void): void {
  reload = listener;
}
