/** Types that @types/node-red lacks. */
import "@node-red/util";

declare module "@node-red/util" {
  interface Util {
    /** Any object can be cloned, not just a message. */
    cloneMessage<T extends object>(msg: T): T;
  }
}
