; What JavaScript and TypeScript share.

; --- functions -------------------------------------------------------------------------
(function_declaration name: (identifier) @name body: (_) @body) @definition.function
(generator_function_declaration name: (identifier) @name body: (_) @body) @definition.function
(method_definition name: (_) @name body: (_) @body) @definition.function

; function expressions bound to a name or a property
(variable_declarator
  name: (identifier) @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
    (generator_function body: (_) @body)
  ]) @definition.lambda
(pair
  key: [(property_identifier) (string) (computed_property_name)] @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
    (generator_function body: (_) @body)
  ]) @definition.lambda
(assignment_expression
  left: (identifier) @name
  right: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @definition.lambda
(assignment_expression
  left: [
   (_ property: [(property_identifier) (private_property_identifier)] @name)
    (subscript_expression index: (string) @name)
  ]
  right: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
    (generator_function body: (_) @body)
  ]) @definition.lambda
; a named function expression wherever it stands: an argument, a value that is returned
(function_expression name: (_) @name body: (_) @body) @definition.function
(generator_function name: (_) @name body: (_) @body) @definition.function
(export_statement "default" @name
  value: [(arrow_function body: (_) @body) (function_expression !name body: (_) @body)]) @definition.function
; memo(…), useCallback(…): the wrapper is not the function, its argument is
(variable_declarator
  name: (identifier) @name
  value: (call_expression
    function: [(identifier) @_wrap (_ property: (property_identifier) @_wrap)]
    arguments: (arguments . [
      (arrow_function body: (_) @body)
      (function_expression body: (_) @body)
    ]))
  (#any-of? @_wrap "memo" "forwardRef" "useCallback" "debounce" "throttle" "observer" "promisify"
    "lazy" "once" "createAsyncThunk" "defineComponent" "asyncHandler" "withErrorHandler")) @definition.lambda

; a component in whatever wrapper
(variable_declarator
  name: (identifier) @name
  value: (call_expression
    arguments: (arguments . [
      (arrow_function body: (_) @body)
      (function_expression body: (_) @body)
    ]))
  (#match? @name "^[A-Z][a-z]")) @definition.lambda

; an object literal bound to a name owns its functions
(variable_declarator name: (identifier) @name value: [
  (object)
  (_ (object))
  (call_expression
    function: (_ property: (property_identifier) @_freeze)
    arguments: (arguments . [(object) (_ (object))] .))
] (#any-of? @_freeze "freeze" "seal" "assign")) @scope
(assignment_expression
  left: (_ property: (property_identifier) @name)
  right: [(object) (_ (object))]
  (#not-eq? @name "exports")
  (#not-eq? @name "prototype")) @scope
(pair key: (property_identifier) @name value: [(object) (_ (object))]) @scope

; --- imports ---------------------------------------------------------------------------
(import_statement (import_clause (identifier) @import.alias) source: (string) @import.module)
(import_statement
  (import_clause (named_imports (import_specifier name: (_) @import.name !alias)))
  source: (string) @import.module)
(import_statement
  (import_clause (named_imports (import_specifier name: _ @import.name alias: (_) @import.alias)))
  source: (string) @import.module)
(import_statement
  (import_clause (namespace_import (identifier) @import.alias)) source: (string) @import.module)
(import_statement . source: (string) @import.module)
(export_statement
  (export_clause (export_specifier name: (_) @import.name)) source: (string) @import.module)
(export_statement
  (export_clause (export_specifier name: (_) @import.name alias: (_) @import.alias))
  source: (string) @import.module)
(export_statement "*" @import.wildcard source: (string) @import.module)
(export_statement (namespace_export) @import.wildcard source: (string) @import.module)
(call_expression function: (import) arguments: (arguments . (string) @import.module))

; --- exports under the same or another name -------------------------------------------
(export_specifier name: (_) @export.name !alias)
(export_specifier name: (_) @export.name alias: (_) @export.alias)
(program (export_statement (_ (variable_declarator name: (identifier) @export.alias value: (identifier) @export.name))))
(export_statement "default" @export.alias value: (identifier) @export.name)
(export_statement "default" @export.alias value: (call_expression arguments: (arguments
  [(identifier) @export.name (call_expression arguments: (arguments (identifier) @export.name))])))
(export_statement "default" @export.alias declaration: (_ name: (_) @export.name))
(export_statement "default" @export.alias value: (_ name: (_) @export.name))
(export_statement "default" @export.alias
  value: (call_expression arguments: (arguments (function_expression name: (_) @export.name))))

; --- references ------------------------------------------------------------------------
(call_expression function: (identifier) @reference.call)
(call_expression function: (_
  object: (_) @receiver property: [(property_identifier) (private_property_identifier)] @reference.call))
(call_expression function: (parenthesized_expression [(sequence_expression (identifier) @reference.call .)
  (sequence_expression (member_expression object: (_) @receiver property: (_) @reference.call) .)]))
(new_expression constructor: (identifier) @reference.call)
(new_expression constructor: (_ object: (_) @receiver property: (_) @reference.call))
(call_expression function: (await_expression (identifier) @reference.call))

(decorator (identifier) @reference.use)
(decorator (_ object: (_) @receiver property: (_) @reference.use))
("instanceof" . (identifier) @reference.use)

; mere mentions
(arguments (identifier) @reference.value)
(arguments (_
  object: [(this) (identifier)] @receiver
  property: [(property_identifier) (private_property_identifier)] @reference.value))
(array (identifier) @reference.value)
(pair value: (identifier) @reference.value)
(pair value: (_ object: [(this) (identifier)] @receiver property: (_) @reference.value))
(shorthand_property_identifier) @reference.value
(return_statement (identifier) @reference.value)
(variable_declarator value: (identifier) @reference.value)
(variable_declarator value: (_
  object: [(this) (identifier)] @receiver property: (_) @reference.value))
(assignment_expression right: (identifier) @reference.value)
(assignment_expression right: (_
  object: [(this) (identifier)] @receiver property: (_) @reference.value))
(spread_element (identifier) @reference.value)
([(ternary_expression consequence: (identifier) @reference.value)
  (ternary_expression alternative: (identifier) @reference.value)
  (binary_expression (identifier) @reference.value) (assignment_pattern right: (identifier) @reference.value)
  (object_assignment_pattern right: (identifier) @reference.value)
  (arrow_function body: (identifier) @reference.value) (template_substitution (identifier) @reference.value)
  (subscript_expression index: (identifier) @reference.value) (yield_expression (identifier) @reference.value)
  (parenthesized_expression (identifier) @reference.value)])
([(binary_expression (member_expression object: (identifier) @receiver property: (_) @reference.value))
  (switch_case value: (member_expression object: (identifier) @receiver property: (_) @reference.value))])
(export_statement value: (identifier) @reference.value)
(export_specifier name: (identifier) @reference.value)

; --- what a variable holds -------------------------------------------------------------
(variable_declarator name: (identifier) @variable
  value: (new_expression constructor: [(identifier) (member_expression)] @variable.type))
(export_statement "default" @variable value: (new_expression constructor: (identifier) @variable.type))
(assignment_expression
  left: (_ object: (this)
    property: [(property_identifier) (private_property_identifier)] @variable.member)
  right: (new_expression constructor: [(identifier) (member_expression)] @variable.type))

; --- constants of a module
(program [
  (lexical_declaration (variable_declarator name: (identifier) @name value: (_)) @definition.constant)
  (variable_declaration (variable_declarator name: (identifier) @name value: (_)) @definition.constant)
  (export_statement (lexical_declaration
    (variable_declarator name: (identifier) @name value: (_)) @definition.constant))
])

(assignment_expression
  left: (_ object: (this)
    property: [(property_identifier) (private_property_identifier)] @variable.member)
  right: (identifier) @variable.copied)