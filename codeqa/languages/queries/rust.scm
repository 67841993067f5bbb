; Rust. Outer doc comments and attributes above an item are joined by the engine.

; --- definitions -----------------------------------------------------------------------
(function_item name: (_) @name body: (block) @body) @definition.function
(function_signature_item name: (_) @name) @definition.function
(struct_item name: (type_identifier) @name body: (field_declaration_list) @body) @definition.struct
(struct_item name: (type_identifier) @name) @definition.struct
(union_item name: (type_identifier) @name body: (_) @body) @definition.struct
(enum_item name: (type_identifier) @name body: (_) @body) @definition.enum
(trait_item name: (type_identifier) @name body: (_) @body) @definition.trait
(mod_item name: (identifier) @name
  body: (declaration_list . (line_comment (inner_doc_comment_marker))* @doc) @body) @definition.module
(type_item name: (type_identifier) @name) @definition.type
(macro_definition name: (identifier) @name) @definition.function

(let_declaration pattern: (identifier) @name
  value: (closure_expression body: (_) @body)) @definition.lambda
(const_item name: (identifier) @name value: (closure_expression body: (_) @body)) @definition.lambda
(static_item name: (identifier) @name value: (closure_expression body: (_) @body)) @definition.lambda

(impl_item type: [
  (type_identifier) @name
  (generic_type type: (type_identifier) @name)
  (generic_type type: (scoped_type_identifier name: (type_identifier) @name))
  (scoped_type_identifier name: (type_identifier) @name)
  (reference_type type: (type_identifier) @name)
  (reference_type type: (generic_type type: (type_identifier) @name))
  (primitive_type) @name
]) @scope
; impl Trait for (A, B), [T; N], fn(…): the whole type is the owner
(impl_item type: [
  (tuple_type) @name (array_type) @name (function_type) @name (pointer_type) @name
  (dynamic_type) @name (unit_type) @name
]) @scope

(const_item name: (identifier) @name value: (_)) @definition.constant
(static_item name: (identifier) @name) @definition.constant

; --- imports ---------------------------------------------------------------------------
(use_declaration argument: [(scoped_identifier) (identifier)] @import.path)
(use_list [(scoped_identifier) (identifier) (self)] @import.path)
(use_as_clause path: [(scoped_identifier) (identifier) (self)] @import.path alias: (_) @import.alias)
(use_wildcard . (_) @import.module) @import.wildcard
(scoped_use_list path: (_) @import.module list: (use_list) @import.group)
(mod_item name: (identifier) @import.module !body)
(extern_crate_declaration name: (identifier) @import.module !alias)

; --- references ------------------------------------------------------------------------
(call_expression function: (identifier) @reference.call)
(call_expression function: (scoped_identifier path: (_) @receiver name: (_) @reference.call))
(call_expression function: (field_expression value: (_) @receiver field: (field_identifier) @reference.call))
(call_expression function: (generic_function function: (identifier) @reference.call))
(call_expression function: (generic_function
  function: (scoped_identifier path: (_) @receiver name: (_) @reference.call)))
(call_expression function: (generic_function
  function: (field_expression value: (_) @receiver field: (field_identifier) @reference.call)))
(macro_invocation macro: (identifier) @reference.call)
(macro_invocation macro: (scoped_identifier path: (_) @receiver name: (_) @reference.call))
(struct_expression name: (type_identifier) @reference.call)
(struct_expression name: (scoped_type_identifier path: (_) @receiver name: (_) @reference.call))

(trait_item bounds: (trait_bounds (type_identifier) @reference.inherits))
(trait_item bounds: (trait_bounds (generic_type type: (type_identifier) @reference.inherits)))
(trait_item bounds: (trait_bounds
  (scoped_type_identifier path: (_) @receiver name: (_) @reference.inherits)))
(impl_item trait: (type_identifier) @reference.inherits)
(impl_item trait: (generic_type type: (type_identifier) @reference.inherits))
(impl_item trait: (scoped_type_identifier path: (_) @receiver name: (_) @reference.inherits))
(impl_item trait: (generic_type
  type: (scoped_type_identifier path: (_) @receiver name: (_) @reference.inherits)))

(scoped_type_identifier path: (_) @receiver name: (type_identifier) @reference.type)
(type_identifier) @reference.type
; Kind::Variant, Type::CONSTANT: the type is what is used
(scoped_identifier path: (identifier) @reference.value)
(scoped_identifier path: (_) @receiver name: (identifier) @reference.value)

; mere mentions; inside a macro the grammar sees words only
(arguments (identifier) @reference.value)
(field_initializer value: (identifier) @reference.value)
(let_declaration value: (identifier) @reference.value)
(token_tree (identifier) @reference.value)
(tuple_struct_pattern type: (identifier) @reference.value)

; --- what a variable holds -------------------------------------------------------------
(let_declaration pattern: (identifier) @variable type: (_) @variable.type)
(let_declaration pattern: (identifier) @variable value: (struct_expression name: (_) @variable.type))
(let_declaration pattern: (identifier) @variable
  value: (call_expression function: (scoped_identifier path: (_) @variable.type name: (_) @_new))
  (#match? @_new "^(new|default|with_|from)"))
(let_declaration pattern: (identifier) @variable
  value: (call_expression function: (identifier) @variable.type)
  (#match? @variable.type "^[A-Z]"))
(parameter pattern: (identifier) @variable type: (_) @variable.type)
(field_declaration name: (field_identifier) @variable type: (_) @variable.type)
