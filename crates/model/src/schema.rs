//! The JSON Schema of workflow documents, for completion and checks in editors.

use serde_json::{Value, json};

/// The schema of both spellings, as JSON Schema 2020-12.
pub fn json_schema() -> Value {
    let duration = json!({
        "description": "A duration such as `10 min`, or a number of milliseconds.",
        "type": ["string", "integer"]
    });
    let policy = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "maxAttempts": {"type": "integer", "minimum": -1, "default": 1, "description": "Attempts in total; -1 means no limit."},
            "delay": {"$ref": "#/$defs/duration"},
            "exponentialBackoff": {"type": "integer", "minimum": 1, "default": 1},
            "maxDelay": {"$ref": "#/$defs/duration"}
        }
    });
    let timeout = json!({
        "oneOf": [
            {"$ref": "#/$defs/duration"},
            {
                "type": "object",
                "additionalProperties": false,
                "required": ["timeout"],
                "properties": {
                    "timeout": {"$ref": "#/$defs/duration"},
                    "errorOnTimeout": {"type": "boolean", "default": false}
                }
            }
        ]
    });
    let resources = json!({
        "description": "What a task needs of an agent.",
        "type": "object",
        "properties": {
            "cpus": {"type": "number", "minimum": 0},
            "memory": {"type": ["string", "integer"], "description": "For example `2 GiB`."},
            "disk": {"type": ["string", "integer"]},
            "gpus": {"type": "number", "minimum": 0}
        },
        "additionalProperties": {"type": "number", "minimum": 0}
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Catena workflow",
        "oneOf": [{"$ref": "#/$defs/short"}, {"$ref": "#/$defs/long"}],
        "$defs": {
            "duration": duration,
            "retryPolicy": policy,
            "timeoutPolicy": timeout,
            "resources": resources,
            "names": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            "env": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
            "var": {
                "oneOf": [
                    {"type": "string"},
                    {"type": "object", "required": ["id"], "additionalProperties": false, "properties": {"id": {"type": "string"}, "value": true}}
                ]
            },
            "vars": {"oneOf": [{"$ref": "#/$defs/var"}, {"type": "array", "items": {"$ref": "#/$defs/var"}}]},
            "short": short_form(),
            "long": long_form(),
            "action": {"oneOf": [{"$ref": "#/$defs/execute"}, {"$ref": "#/$defs/for"}, {"$ref": "#/$defs/include"}, {"$ref": "#/$defs/first"}]},
            "execute": execute(),
            "for": for_each(),
            "include": {
                "type": "object",
                "required": ["type", "macro"],
                "additionalProperties": false,
                "properties": {
                    "id": {"type": "string"},
                    "type": {"const": "include"},
                    "macro": {"type": "string"},
                    "inputs": {"type": "array", "items": {"$ref": "#/$defs/input"}},
                    "outputs": {"type": "array", "items": {"$ref": "#/$defs/output"}},
                    "dependsOn": {"$ref": "#/$defs/names"},
                    "when": {"type": ["string", "boolean"]}
                }
            },
            "first": {
                "description": "Takes the first of several values that is there.",
                "type": "object",
                "required": ["type", "inputs", "output"],
                "additionalProperties": false,
                "properties": {
                    "id": {"type": "string"},
                    "type": {"const": "first"},
                    "inputs": {"$ref": "#/$defs/vars"},
                    "output": {"$ref": "#/$defs/var"},
                    "dependsOn": {"$ref": "#/$defs/names"}
                }
            },
            "input": {
                "type": "object",
                "required": ["id"],
                "oneOf": [{"required": ["var"]}, {"required": ["value"]}],
                "additionalProperties": false,
                "properties": {"id": {"type": "string"}, "var": {"$ref": "#/$defs/var"}, "value": true}
            },
            "output": {
                "type": "object",
                "required": ["id", "var"],
                "additionalProperties": false,
                "properties": {
                    "id": {"type": "string"},
                    "var": {"$ref": "#/$defs/var"},
                    "prefix": {"type": "string", "description": "A directory, or the beginning of the file name."},
                    "store": {"type": "boolean", "default": false, "description": "Keep the value as a result."},
                    "as": {"type": "string", "description": "The exact file name; may use inputs, such as `{x.stem}.txt`."},
                    "value": {"type": "boolean", "default": false, "description": "Not the file counts but what is in it: a number, a word."}
                }
            },
            "service": service()
        }
    })
}

fn short_form() -> Value {
    json!({
        "type": "object",
        "required": ["catena", "steps"],
        "additionalProperties": false,
        "properties": {
            "catena": {"const": 1, "description": "Version of the short form."},
            "name": {"type": "string"},
            "priority": {"type": "integer"},
            "inputs": {
                "type": "object",
                "description": "Values that can be set with -i. `{glob: …}`, `{file: …}`, `{files: […]}` and `{range: …}` make lists and paths."
            },
            "services": true,
            "macros": true,
            "steps": {"type": "object", "additionalProperties": {"$ref": "#/$defs/short/$defs/step"}},
            "results": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Named results, such as `{step.out}`."}
        },
        "$defs": {
            "step": {
                "type": "object",
                "oneOf": [{"required": ["run"]}, {"required": ["service"]}, {"required": ["use"]}],
                "additionalProperties": false,
                "properties": {
                    "for": {"$ref": "#/$defs/names", "description": "`x in xs`: one task per element; a list of loops is their product."},
                    "zip": {"$ref": "#/$defs/names", "description": "Like `for`, but walks through the lists side by side."},
                    "run": {"type": "string", "description": "A shell command. `{name}` inserts a value, quoted."},
                    "service": {"type": "string", "description": "A registered service in place of a command."},
                    "use": {"type": "string", "description": "Another workflow file in place of a command."},
                    "in": {"type": "object", "description": "Values for the parameters of the service or workflow."},
                    "out": {"description": "The name of the output file, or a mapping of names to files; a directory ends in `/`; `{value: file}` is what is in the file.", "type": ["string", "object"]},
                    "after": {"$ref": "#/$defs/names", "description": "Steps that must have ended before."},
                    "when": {"type": ["string", "boolean"], "description": "Runs only if this holds, such as `{min} > 1`."},
                    "needs": {"$ref": "#/$defs/names", "description": "Capabilities an agent must offer."},
                    "package": {"type": "string", "description": "The system package with the programs of the command, named when one is missing."},
                    "cpus": {"type": "number"},
                    "memory": {"type": ["string", "integer"]},
                    "disk": {"type": ["string", "integer"]},
                    "gpus": {"type": "number"},
                    "resources": {"$ref": "#/$defs/resources"},
                    "retries": {"oneOf": [{"type": "integer", "minimum": 0}, {"$ref": "#/$defs/retryPolicy"}]},
                    "timeout": {"$ref": "#/$defs/timeoutPolicy"},
                    "maxInactivity": {"$ref": "#/$defs/timeoutPolicy"},
                    "deadline": {"$ref": "#/$defs/timeoutPolicy"},
                    "env": {"$ref": "#/$defs/env"},
                    "cache": {"type": "boolean", "default": true},
                    "replicas": {"type": "integer", "minimum": 1},
                    "start": {"const": "exclusive", "description": "Among peers, a task that must not be started twice, whatever happens."}
                }
            }
        }
    })
}

fn long_form() -> Value {
    json!({
        "type": "object",
        "required": ["actions"],
        "additionalProperties": false,
        "properties": {
            "api": {"type": ["string", "number"], "default": "4.7.0"},
            "name": {"type": "string"},
            "priority": {"type": "integer", "default": 0},
            "retries": {"type": "object", "additionalProperties": false, "properties": {"processChains": {"$ref": "#/$defs/retryPolicy"}}},
            "vars": {
                "type": "array",
                "items": {"type": "object", "required": ["id"], "additionalProperties": false, "properties": {"id": {"type": "string"}, "value": true}}
            },
            "actions": {"type": "array", "items": {"$ref": "#/$defs/action"}},
            "results": {"type": "object", "additionalProperties": {"type": "string"}},
            "services": {"oneOf": [{"$ref": "#/$defs/names"}, {"type": "array", "items": {"$ref": "#/$defs/service"}}]},
            "macros": {"type": "array"}
        }
    })
}

fn execute() -> Value {
    json!({
        "type": "object",
        "required": ["type"],
        "oneOf": [{"required": ["service"]}, {"required": ["run"]}],
        "additionalProperties": false,
        "properties": {
            "id": {"type": "string"},
            "type": {"const": "execute"},
            "service": {"type": "string"},
            "run": {"type": "string", "description": "A shell command in place of a service."},
            "inputs": {"type": "array", "items": {"$ref": "#/$defs/input"}},
            "parameters": {"type": "array", "items": {"$ref": "#/$defs/input"}, "deprecated": true},
            "outputs": {"type": "array", "items": {"$ref": "#/$defs/output"}},
            "dependsOn": {"$ref": "#/$defs/names"},
            "retries": {"$ref": "#/$defs/retryPolicy"},
            "maxInactivity": {"$ref": "#/$defs/timeoutPolicy"},
            "maxRuntime": {"$ref": "#/$defs/timeoutPolicy"},
            "deadline": {"$ref": "#/$defs/timeoutPolicy"},
            "when": {"type": ["string", "boolean"]},
            "resources": {"$ref": "#/$defs/resources"},
            "requiredCapabilities": {"$ref": "#/$defs/names"},
            "env": {"$ref": "#/$defs/env"},
            "cache": {"type": "boolean", "default": true},
            "replicas": {"type": "integer", "minimum": 1},
            "start": {"const": "exclusive", "description": "Among peers, a task that must not be started twice, whatever happens."}
        }
    })
}

fn for_each() -> Value {
    json!({
        "type": "object",
        "required": ["type", "input", "enumerator"],
        "additionalProperties": false,
        "properties": {
            "id": {"type": "string"},
            "type": {"const": "for"},
            "input": {"$ref": "#/$defs/var"},
            "enumerator": {"$ref": "#/$defs/var"},
            "zip": {"type": "array"},
            "output": {"$ref": "#/$defs/vars"},
            "actions": {"type": "array", "items": {"$ref": "#/$defs/action"}},
            "yieldToOutput": {"$ref": "#/$defs/vars"},
            "yieldToInput": {"$ref": "#/$defs/var"},
            "collect": {"enum": ["joined", "nested"], "default": "joined", "description": "Whether a list that is yielded is taken apart or is one element."},
            "carry": {
                "description": "What each iteration gets from the one before it. The output is what the last one yields.",
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["enumerator", "init"],
                    "additionalProperties": false,
                    "properties": {"enumerator": {"$ref": "#/$defs/var"}, "init": {"$ref": "#/$defs/var"}}
                }
            },
            "while": {"type": ["string", "boolean"], "description": "With `carry`: the next iteration begins only if this holds."},
            "pairs": {"$ref": "#/$defs/var", "description": "Holds the second of a pair: pairs are made until one value is left."},
            "dependsOn": {"$ref": "#/$defs/names"},
            "when": {"type": ["string", "boolean"]}
        }
    })
}

fn service() -> Value {
    json!({
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "string"},
            "name": {"type": "string"},
            "description": {"type": "string"},
            "path": {"type": "string"},
            "run": {"type": "string"},
            "runtime": {"type": "string", "default": "other"},
            "parameters": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["id", "type"],
                    "properties": {
                        "id": {"type": "string"},
                        "name": {"type": "string"},
                        "description": {"type": "string"},
                        "type": {"enum": ["input", "output"]},
                        "cardinality": {"type": "string", "pattern": "^\\s*\\d+\\s*\\.\\.\\s*(\\d+|n)\\s*$"},
                        "dataType": {"type": "string", "default": "string"},
                        "default": true,
                        "fileSuffix": {"type": "string"},
                        "label": {"type": "string"}
                    }
                }
            },
            "runtimeArgs": {"type": "array"},
            "requiredCapabilities": {"$ref": "#/$defs/names"},
            "resources": {"$ref": "#/$defs/resources"},
            "env": {"$ref": "#/$defs/env"},
            "package": {"type": "string", "description": "The system package that has the program."},
            "cache": {"type": "boolean", "default": true},
            "retries": {"$ref": "#/$defs/retryPolicy"},
            "maxInactivity": {"$ref": "#/$defs/timeoutPolicy"},
            "maxRuntime": {"$ref": "#/$defs/timeoutPolicy"},
            "deadline": {"$ref": "#/$defs/timeoutPolicy"},
            "start": {"const": "exclusive", "description": "Among peers, a task that must not be started twice, whatever happens."}
        }
    })
}
