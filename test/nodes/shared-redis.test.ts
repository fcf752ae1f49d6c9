import { describeShared } from "../support/shared.js";

describeShared("Redis");
