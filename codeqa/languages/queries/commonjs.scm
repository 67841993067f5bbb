; Prototypes and CommonJS: read where a file says `require(`, `exports` or `.prototype`.

; module.exports = function load() { … }
(assignment_expression
  left: [(identifier) @_exports (_ property: (property_identifier) @_exports)]
  right: [
    (function_expression name: (_) @name body: (_) @body)
    (generator_function name: (_) @name body: (_) @body)
  ]
  (#eq? @_exports "exports")) @definition.function
(assignment_expression
  left: [
    (member_expression
      object: (member_expression object: [
        (identifier) @owner
       (_ property: (property_identifier) @owner)
      ] property: (property_identifier) @_prototype)
      property: (property_identifier) @name)
    (subscript_expression
      object: (_ object: (identifier) @owner property: (property_identifier) @_prototype)
      index: [(string) (member_expression)] @name)
  ]
  right: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
    (generator_function body: (_) @body)
  ]
  (#eq? @_prototype "prototype")) @definition.method
; what is given to a prototype is its class's
(assignment_expression
  left: (_
    object: [(identifier) @name (_ property: (property_identifier) @name)]
    property: (property_identifier) @_prototype)
  right: [(object) (call_expression arguments: (arguments (object)))]
  (#eq? @_prototype "prototype")) @scope
(call_expression
  function: [(identifier) @_assign (_ property: (property_identifier) @_assign)]
  arguments: (arguments
    (_
      object: [(identifier) @name (_ property: (property_identifier) @name)]
      property: (property_identifier) @_prototype)
    (object))
  (#not-eq? @_assign "create")
  (#eq? @_prototype "prototype")) @scope
(assignment_expression
  left: (_ property: (property_identifier) @import.wildcard)
  right: (call_expression
    function: (identifier) @_require arguments: (arguments . (string) @import.module))
  (#eq? @_require "require") (#eq? @import.wildcard "exports"))
(assignment_expression
  left: (_ object: (_) @_exports property: (property_identifier) @import.alias)
  right: (call_expression
    function: (identifier) @_require arguments: (arguments . (string) @import.module))
  (#eq? @_require "require") (#match? @_exports "^(module[.])?exports$"))
; const a = require("b") · await import("b") · lazy(() => import("b")) · wrapped(require("b")) · require("b").c() · require("b")()
([(variable_declarator name: (identifier) @import.alias value: [
    (call_expression function: [(identifier) (import)] @_require arguments: (arguments . (string) @import.module))
    (await_expression (call_expression function: [(identifier) (import)] @_require arguments: (arguments . (string) @import.module)))
    (call_expression arguments: (arguments . [
      (call_expression function: (identifier) @_require arguments: (arguments . (string) @import.module))
      (arrow_function body: (call_expression function: (import) @_require arguments: (arguments . (string) @import.module)))]))])
  (assignment_expression left: (identifier) @import.alias right: (call_expression function: [(identifier) (import)] @_require arguments: (arguments . (string) @import.module)))
  (_ object: (call_expression function: [(identifier) (import)] @_require arguments: (arguments . (string) @import.module)) @import.alias)
  (call_expression function:
    (call_expression function: (identifier) @_require arguments: (arguments . (string) @import.module) @import.alias))
] (#any-of? @_require "require" "import"))
((variable_declarator name: (identifier) @import.alias value: (_
    object: [(call_expression function: [(identifier) (import)] @_require arguments: (arguments . (string) @import.module))
      (parenthesized_expression (await_expression (call_expression function: [(identifier) (import)] @_require arguments: (arguments . (string) @import.module))))]
    property: (property_identifier) @import.name))
  (#any-of? @_require "require" "import"))
((variable_declarator
  name: (object_pattern [(shorthand_property_identifier_pattern) @import.name
    (pair_pattern key: (_) @import.name value: (identifier) @import.alias)])
  value: [(call_expression function: [(identifier) (import)] @_require arguments: (arguments . (string) @import.module))
    (await_expression (call_expression function: [(identifier) (import)] @_require arguments: (arguments . (string) @import.module)))])
  (#any-of? @_require "require" "import"))
((call_expression function: (call_expression function: (identifier) @_require arguments: (arguments . (string)) @reference.call))
  (#eq? @_require "require"))
((assignment_expression left: (member_expression property: (property_identifier) @variable)
  right: (new_expression constructor: (identifier) @variable.type)) (#eq? @variable "exports"))
; module.exports = a · = { a, b: c } · exports.b = a
(assignment_expression
  left: (_ object: (_) @_exports property: (property_identifier) @export.alias)
  right: [
    (identifier) @export.name
    (function_expression name: (_) @export.name)
    (class name: (_) @export.name)
    (call_expression arguments: (arguments [
      (identifier) @export.name
      (function_expression name: (_) @export.name)
    ]))
  ]
  (#match? @_exports "^((module[.])?exports|module)$"))
(assignment_expression
  left: (_ property: (property_identifier) @_exports)
  right: (object [
    (shorthand_property_identifier) @export.name
    (pair key: (property_identifier) @export.alias value: (identifier) @export.name)
  ])
  (#eq? @_exports "exports"))
(assignment_expression
  left: (_ object: (_) @_exports property: (property_identifier) @export.alias)
  right: (assignment_expression right: [
    (identifier) @export.name
    (function_expression name: (_) @export.name)
    (class name: (_) @export.name)
  ])
  (#match? @_exports "^((module[.])?exports|module)$"))
