// One at a time, in the order of asking. Used for what changes a store's branches and what is kept beside them.
export class Mutex {
  private last: Promise<unknown> = Promise.resolve();

  run<T>(action: () => Promise<T>): Promise<T> {
    const result = this.last.then(action, action);
    this.last = result.catch(() => undefined);
    return result;
  }
}
