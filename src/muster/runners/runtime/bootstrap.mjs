// Runs a Node.js handler by the Lambda Runtime API (https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html).
//
// Keeps true: one event at a time, each answered once, by response or by error. Handlers may be ES modules or CommonJS,
// async, returning a promise, or calling back (https://docs.aws.amazon.com/lambda/latest/dg/nodejs-handler.html).
// Does not know who is at the other end.

import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import util from "node:util";
import { pathToFileURL } from "node:url";

const [host, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(":");
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const PREFIX = "/2018-06-01/runtime";

let current = null; // the invocation under way: { id, settle, answered, waitsForEmptyLoop }

function ask(method, target, body, headers = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request({ host, port, method, path: PREFIX + target, agent, headers }, (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("end", () => resolve({ headers: response.headers, body: Buffer.concat(chunks).toString("utf8") }));
      response.on("error", reject);
    });
    request.on("error", reject);
    request.end(body);
  });
}

function described(error) {
  if (error instanceof Error || (error && typeof error === "object" && "message" in error && "stack" in error)) {
    return {
      errorType: error.name || "Error",
      errorMessage: error.message,
      trace: String(error.stack || "").split("\n"),
    };
  }
  return { errorType: typeof error, errorMessage: String(error), trace: [] };
}

function report(target, error) {
  const body = JSON.stringify(described(error));
  return ask("POST", target, body, {
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(body),
    "Lambda-Runtime-Function-Error-Type": described(error).errorType,
  });
}

class RuntimeFault extends Error {
  constructor(name, message) {
    super(message);
    this.name = `Runtime.${name}`;
  }
}

// As the managed runtimes print: instant, request id, level, message, between tabs; or a JSON object, from a level up.
const LEVELS = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];
const asJson = process.env.AWS_LAMBDA_LOG_FORMAT === "JSON";
const lowest = asJson ? LEVELS.indexOf(process.env.AWS_LAMBDA_LOG_LEVEL || "INFO") : 0;

function line(level, values) {
  const timestamp = new Date().toISOString();
  if (asJson) {
    const message = values.length === 1 && typeof values[0] === "object" ? values[0] : util.format(...values);
    const record = { timestamp, level, requestId: current?.id, message };
    try {
      return JSON.stringify(record);
    } catch {
      return JSON.stringify({ ...record, message: util.format(...values) }); // it refers to itself
    }
  }
  return `${timestamp}\t${current ? current.id : "undefined"}\t${level}\t${util.format(...values).replaceAll("\n", "\r")}`;
}

for (const [method, level] of Object.entries({
  log: "INFO", info: "INFO", debug: "DEBUG", warn: "WARN", error: "ERROR", trace: "TRACE",
})) {
  console[method] = (...values) => {
    if (LEVELS.indexOf(level) >= lowest) fs.writeSync(1, line(level, values) + "\n");
  };
}

async function load(root, name) {
  const match = /^(?:(.*)\/)?([^/.]+)\.(.+)$/.exec(name);
  if (!match || name.includes("..")) {
    throw new RuntimeFault("MalformedHandlerName", `'${name}' is not a valid handler name`);
  }
  const base = path.resolve(root, match[1] || "", match[2]);
  const file = ["", ".js", ".mjs", ".cjs"].map((end) => base + end).find((file) => {
    return fs.existsSync(file) && fs.statSync(file).isFile();
  });
  if (!file) {
    throw new RuntimeFault("ImportModuleError", `Error: Cannot find module '${path.basename(base)}'`);
  }
  let module;
  try {
    module = await import(pathToFileURL(file).href);
  } catch (error) {
    if (error instanceof SyntaxError) throw new RuntimeFault("UserCodeSyntaxError", String(error));
    if (/^(ERR_)?MODULE_NOT_FOUND$/.test(error?.code)) throw new RuntimeFault("ImportModuleError", String(error));
    throw error;
  }
  const reach = (from) => match[3].split(".").reduce((value, key) => value?.[key], from);
  const handler = reach(module) ?? reach(module.default);
  if (handler === undefined) throw new RuntimeFault("HandlerNotFound", `${name} is undefined or not exported`);
  if (typeof handler !== "function") throw new RuntimeFault("HandlerNotFound", `${name} is not a function`);
  return handler;
}

function contextOf(headers, invocation) {
  const deadline = Number(headers["lambda-runtime-deadline-ms"]);
  const client = headers["lambda-runtime-client-context"];
  const identity = headers["lambda-runtime-cognito-identity"];
  return {
    get callbackWaitsForEmptyEventLoop() { return invocation.waitsForEmptyLoop; },
    set callbackWaitsForEmptyEventLoop(value) { invocation.waitsForEmptyLoop = value; },
    functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: process.env.AWS_LAMBDA_FUNCTION_VERSION,
    memoryLimitInMB: process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    logGroupName: process.env.AWS_LAMBDA_LOG_GROUP_NAME,
    logStreamName: process.env.AWS_LAMBDA_LOG_STREAM_NAME,
    awsRequestId: invocation.id,
    invokedFunctionArn: headers["lambda-runtime-invoked-function-arn"],
    clientContext: client ? JSON.parse(client) : undefined,
    identity: identity ? JSON.parse(identity) : undefined,
    getRemainingTimeInMillis: () => Math.max(0, deadline - Date.now()),
    done: (error, result) => invocation.settle(error, result),
    succeed: (result) => invocation.settle(null, result),
    fail: (error) => invocation.settle(error ?? new Error("handler failed")),
  };
}

function outcome(handler, event, headers, invocation) {
  return new Promise((resolve, reject) => {
    invocation.settle = (error, result) => (error ? reject(error) : resolve(result));
    // A callback's result is kept until the event loop is empty, unless the handler says otherwise.
    const callback = (error, result) => {
      if (!invocation.waitsForEmptyLoop || error) return invocation.settle(error, result);
      invocation.atEmptyLoop = () => resolve(result);
      return undefined;
    };
    invocation.atEmptyLoop = () => resolve(null);
    const returned = handler(event, contextOf(headers, invocation), callback);
    if (typeof returned?.then === "function") {
      invocation.atEmptyLoop = null;
      returned.then(resolve, reject);
    }
  });
}

process.on("beforeExit", () => {
  const finish = current?.atEmptyLoop;
  if (finish) {
    current.atEmptyLoop = null;
    finish();
  }
});

async function fatal(name, error, status) {
  const fault = new RuntimeFault(name, `${error?.name ?? "Error"}: ${error?.message ?? error}`);
  fault.stack = error?.stack ?? fault.stack;
  console.error(`${name}`, error);
  await report(current ? `/invocation/${current.id}/error` : "/init/error", name === "Unhandled" ? error : fault).catch(() => {});
  process.exit(status);
}
process.on("uncaughtException", (error) => fatal("Unhandled", error, 129));
process.on("unhandledRejection", (error) => fatal("UnhandledPromiseRejection", error, 128));

async function serve(handler) {
  for (;;) {
    const { headers, body } = await ask("GET", "/invocation/next");
    const id = headers["lambda-runtime-aws-request-id"];
    process.env._X_AMZN_TRACE_ID = headers["lambda-runtime-trace-id"] ?? "";
    current = { id, waitsForEmptyLoop: true, atEmptyLoop: null };
    try {
      const result = await outcome(handler, JSON.parse(body), headers, current);
      const text = Buffer.from(JSON.stringify(result === undefined ? null : result) ?? "null");
      await ask("POST", `/invocation/${id}/response`, text, {
        "Content-Type": "application/json",
        "Content-Length": text.length,
      });
    } catch (error) {
      console.error("Invoke Error", JSON.stringify(described(error)));
      await report(`/invocation/${id}/error`, error);
    }
    current = null;
  }
}

let handler;
try {
  handler = await load(process.env.LAMBDA_TASK_ROOT, process.env._HANDLER);
} catch (error) {
  console.error("Uncaught Exception", JSON.stringify(described(error)));
  await report("/init/error", error).catch(() => {});
  process.exit(1);
}
serve(handler).catch(() => process.exit(1)); // the other end is gone
